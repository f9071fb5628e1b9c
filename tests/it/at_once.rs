//! Hooks of one agent at the same instant, as parallel calls of tools and sub-agents fire them: whoever comes second finds what the
//! first one has not yet told.

use crate::sandbox::{Sandbox, check_all};

/// A prompt, and calls of its tools, in the agent's own shell: `pre ID TOOL FILE`, `post ID TOOL FILE`; `held COMMANDS` fires these
/// hooks while another program has the worktree's lock, and lets it go when as many lines have come as were told.
const AGENT: &str = r#"
    tell() { printf '{"hook_event_name":"%s","session_id":"%s","prompt":"p"%s}' "$@" | oxundo hook claude; }
    input() { if [ $2 = Bash ]; then echo '{"command":"x"}'; else echo "{\"file_path\":\"$PWD/$3\"}"; fi; }
    about() { echo ",\"tool_name\":\"$2\",\"tool_use_id\":\"$1\",\"tool_input\":$(input "$@")"; }
    pre() { tell PreToolUse ${S:-s} "$(about "$@")"; }
    post() { tell PostToolUse ${S:-s} "$(about "$@")"; }
    lines() { wc -l <.git/oxundo/calls; }
    held() { # so many lines come before the lock is needed
        wanted=$(($(lines) + $1)); shift
        exec 9>>.git/oxundo/lock; flock 9
        for command; do eval "$command" 9>&- & done
        until [ $(lines) -ge $wanted ]; do sleep .01; done
        flock -u 9; wait
    }
    for n in 1 2; do seq 100 >f$n; done; git add -A; git commit -qm files
    tell UserPromptSubmit s ''; pre 0 Bash; post 0 Bash
"#;

/// Runs it, and gives what the turn's commit has.
fn told(story: &str) -> (Sandbox, String) {
    let repo = Sandbox::new();
    repo.by_agent(&format!("set -e\n{AGENT}\n{story}\ntell Stop s ''")).success();
    let commit = repo.git(["show", "--format="]);
    (repo, commit)
}

#[test]
fn calls_that_end_at_the_same_instant_are_each_in_a_step_and_what_comes_after_is_the_users() {
    let tools = [("Edit", "Edit"), ("Bash", "Bash"), ("Edit", "Bash"), ("Bash", "Edit")];
    check_all(tools.map(|pair| (format!("{pair:?}"), pair)), |(one, two)| {
        let mut story = String::new();
        for round in 1..=3 {
            story.push_str(&format!(
                "pre {round}.1 {one} f1; pre {round}.2 {two} f2
                sed -i 's/^{round}0$/AGENT1/' f1; sed -i 's/^{round}0$/AGENT2/' f2
                held 2 'post {round}.1 {one} f1' 'post {round}.2 {two} f2'
                sed -i 's/^{round}5$/USER/' f1 f2\n"
            ));
        }
        let (repo, commit) = told(&story);
        assert_eq!(commit.matches("+AGENT").count(), 6, "{commit}");
        assert_eq!(commit.matches("+USER").count(), 0, "{commit}");
        repo.undo();
        let left = repo.sh("cat f1 f2");
        assert_eq!((left.matches("AGENT").count(), left.matches("USER").count()), (0, 6), "{left}");
        repo.assert_sound();
    });
}

#[test]
fn where_hooks_are_set_up_in_two_places_a_call_is_one_and_what_comes_after_is_the_users() {
    // Both at once, one a moment later than the other, and one that is killed before its end.
    let ways = [
        ("pre R T f1 & pre R T f1 & wait", "post R T f1 & post R T f1 & wait"),
        ("pre R T f1; pre R T f1", "post R T f1"),
    ];
    let cases = ways.iter().flat_map(|way| ["Edit", "Bash"].map(|tool| (format!("{tool}: {way:?}"), (*way, tool))));
    check_all(cases, |((pre, post), tool)| {
        let mut story = String::new();
        for round in 1..=4 {
            let told = |line: &str| line.replace('R', &round.to_string()).replace('T', tool);
            story.push_str(&format!(
                "{}
                sed -i 's/^{round}0$/AGENT/' f1
                {}
                sed -i 's/^{round}5$/USER/' f1 f2\n",
                told(pre),
                told(post)
            ));
        }
        let (repo, commit) = told(&story);
        assert_eq!(commit.matches("+AGENT").count(), 4, "{commit}");
        assert_eq!(commit.matches("+USER").count(), 0, "{commit}");
        repo.undo();
        let left = repo.sh("cat f1 f2");
        assert_eq!((left.matches("AGENT").count(), left.matches("USER").count()), (0, 8), "{left}");
        repo.assert_sound();
    });
}

#[test]
fn a_call_that_ends_as_another_begins_is_told_from_what_comes_after() {
    let (repo, commit) = told(
        "pre 1 Bash; sed -i 's/^10$/AGENT1/' f1; held 1 'post 1 Bash' 'pre 2 Bash'
        sed -i 's/^20$/AGENT2/' f1; post 2 Bash; sed -i 's/^30$/USER/' f1",
    );
    assert_eq!((commit.matches("+AGENT").count(), commit.matches("+USER").count()), (2, 0), "{commit}");
    repo.undo();
    let left = repo.sh("cat f1");
    assert_eq!((left.matches("AGENT").count(), left.matches("USER").count()), (0, 1), "{left}");
}

/// What carries one call out is nothing that another has left behind.
#[test]
fn what_is_at_work_for_a_call_beside_goes_on_for_no_other() {
    let parallel = |rest: &str| {
        format!(
            "until_there() {{ until [ -e ../home/$1 ] || [ ! -e ../home ]; do sleep .01; done; }}
            pre 1 Bash; until_there one & one=$!
            pre 2 Bash; until_there two & two=$!
            sed -i 's/^10$/AGENT1/' f1; {rest}
            touch ../home/one; wait $one; post 1 Bash
            sed -i 's/^20$/AGENT2/' f1
            touch ../home/two; wait $two; post 2 Bash
            sed -i 's/^30$/LATER/' f1"
        )
    };
    let (repo, commit) = told(&parallel("true"));
    assert_eq!((commit.matches("+AGENT").count(), commit.matches("+LATER").count()), (2, 0), "{commit}");
    repo.undo();
    repo.write("../home/over", "");
    // What the first has left behind is seen as the last of them ends: then all may be its work.
    let (repo, commit) = told(&parallel("until_there over &"));
    repo.write("../home/over", "");
    assert_eq!((commit.matches("+AGENT").count(), commit.matches("+LATER").count()), (2, 1), "{commit}");
}

/// What is saved beside it goes with the turn, and is named; what the user commits is theirs, also where the next call writes that file.
#[test]
fn what_is_saved_beside_what_a_call_left_is_named_and_what_is_committed_stays() {
    let until = "until_there() { until [ -e ../home/$1 ] || [ ! -e ../home ]; do sleep .01; done; }";
    let (repo, commit) = told(&format!("{until}; pre 1 Bash; until_there over & post 1 Bash; echo USER >u"));
    assert!(commit.contains("+USER"), "{commit}");
    let done = repo.state();
    let undone = repo.oxundo(["undo"]);
    undone.success();
    assert!(undone.err().contains("'u' changed outside of turn 1's calls"), "{undone:?}");
    repo.redo();
    repo.state().assert_is(&done, "redo");
    repo.write("../home/over", "");
    for (saves, stays) in [
        ("seq 50 >u; echo USER >>u; git add u; git commit -qm mine", "USER"),
        ("sed -i 's/^10$/USER/' f1; git commit -qm mine f1; cp f1 u", "USER"),
    ] {
        let writes = "pre 2 Edit f1; sed -i 's/^90$/AGENT2/' f1; post 2 Edit f1
            pre 3 Edit u; sed -i 's/^30$/AGENT2/' u; post 3 Edit u";
        let (repo, _) = told(&format!(
            "{until}; pre 1 Bash; sed -i 's/^50$/AGENT1/' f2; until_there over & post 1 Bash; {saves}; {writes}"
        ));
        let done = repo.state();
        repo.undo();
        assert!(!repo.sh("cat f1 f2; cat u || :").contains("AGENT"), "{saves}");
        let committed = repo.git(["show", "--name-only", "--format=", "HEAD"]).replace('\n', " ");
        assert!(repo.sh(&format!("cat {committed}")).contains(stays), "{saves}: it is committed, and stays");
        assert_eq!(repo.sh(&format!("git status --porcelain -- {committed}")), "", "{saves}");
        repo.redo();
        repo.state().assert_is(&done, "redo");
        repo.write("../home/over", "");
    }
}

/// A server of tools, the command of a status line: no call has left them running.
#[test]
fn what_an_agent_itself_starts_while_a_call_is_in_flight_goes_on_for_none() {
    let until = "sh -c 'until [ -e ../home/over ]; do sleep .01; done'";
    let ways = [
        ("elsewhere", format!("(cd / && exec sleep 600) & {until} & kill $!"), false),
        ("without the variable of calls", format!("{until} & CLAUDECODE=1"), false),
        ("with it", format!("CLAUDECODE=1 {until} & CLAUDECODE=1"), true),
        ("where no hook has it", format!("{until} &"), true),
    ];
    check_all(ways.map(|(name, starts, goes_on)| (name.to_owned(), (starts, goes_on))), |(starts, goes_on)| {
        let (repo, commit) = told(&format!(
            "pre 1 Bash; {starts}
            [ -z \"${{CLAUDECODE-}}\" ] || export CLAUDECODE
            sed -i 's/^10$/AGENT/' f1; post 1 Bash
            sed -i 's/^30$/LATER/' f1; touch ../home/over"
        ));
        assert_eq!((commit.matches("+AGENT").count(), commit.contains("+LATER")), (1, *goes_on), "{commit}");
        repo.assert_sound();
    });
}

/// A server that was there before a call starts its worker anew in the middle of it.
#[test]
fn what_a_server_starts_while_a_call_is_in_flight_goes_on_for_none() {
    // Where an agent runs all its commands in one shell, what that starts is what these have left.
    for is_left in [false, true] {
        let server = "until [ -e ../home/go ]; do sleep .01; done; sleep 600 & touch ../home/gone; wait";
        let start = if is_left {
            format!("mkfifo ../home/pipe; sh <../home/pipe & exec 8>../home/pipe; echo '{server}' >&8")
        } else {
            format!("sh -c '{server}' &")
        };
        let (_repo, commit) = told(&format!(
            "{start}
            pre 1 Bash; touch ../home/go; until [ -e ../home/gone ]; do sleep .01; done
            sed -i 's/^10$/AGENT/' f1; post 1 Bash
            sed -i 's/^30$/LATER/' f1; kill $(pgrep -P $!) $!"
        ));
        assert_eq!((commit.matches("+AGENT").count(), commit.contains("+LATER")), (1, is_left), "{commit}");
    }
}

/// A formatter, a watcher: it goes on, and what it writes is the turn's, whatever the agent does next there.
#[test]
fn what_a_command_left_running_writes_is_the_turns_though_an_edit_of_the_file_comes_next() {
    let stories = [
        ("edited", "sed -i 's/^20$/AGENT2/' f1", "Edit f1"),
        ("made", "echo AGENT2 >made", "Edit made"),
        ("deleted", "rm f1", "Write f1"),
    ];
    check_all(stories.map(|(name, late, next)| (name.to_owned(), (late, next))), |(late, next)| {
        let (repo, commit) = told(&format!(
            "pre 1 Bash; sed -i 's/^10$/AGENT1/' f2
            sh -c 'until [ -e ../home/go ]; do sleep .01; done; {late}; touch ../home/gone; until [ -e ../home/over ]; do sleep .01; done' &
            post 1 Bash; touch ../home/go; until [ -e ../home/gone ]; do sleep .01; done
            pre 2 {next}; echo AGENT3 >>{}; post 2 {next}; touch ../home/over",
            next.split(' ').next_back().expect("a file")
        ));
        assert!(commit.contains("+AGENT1") && commit.contains("+AGENT3"), "{commit}");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "all of it is in the turn");
        repo.undo();
        assert_eq!(repo.sh("ls; cat f1 f2 | grep AGENT || :"), "README.txt\nf1\nf2", "and goes with it");
    });
}

/// Nothing tells its end, as after Escape: what changed since counts as the turn's, and is named.
#[test]
fn what_changed_after_a_call_of_which_nothing_told_the_end_is_named_where_it_goes() {
    let (repo, _commit) = told(
        "pre 1 Edit f1; sed -i 's/^10$/AGENT/' f1; post 1 Edit f1
        pre 2 Bash; sed -i 's/^10$/LATER/' f2",
    );
    let output = repo.oxundo(["undo"]);
    output.success();
    output.warns("'f2' changed outside of turn 1's calls, while one may have been at work: what you saved there goes");
}

/// What was saved before the call that starts it is not its work.
#[test]
fn what_the_user_saved_before_a_command_was_left_running_is_theirs() {
    let saves = [
        ("pre 1 Edit f1; echo AGENT >>f1; post 1 Edit f1; echo USER >>f2", "sed -i 1iAGENT f1"),
        ("pre 1 Bash; echo AGENT >>f1; post 1 Bash; echo USER >>f2; echo USER >new", "true"),
        ("echo USER >>f2; pre 1 Edit f1; echo AGENT >>f1; post 1 Edit f1", "true"),
        ("echo USER >>f2; pre 1 Bash f1; echo AGENT >>f1; post 1 Bash f1; git mv f2 f3", "true"),
    ];
    check_all(saves.map(|(saves, call)| (format!("{saves}; {call}"), (saves, call))), |(saves, call)| {
        let (repo, commit) = told(&format!(
            "{saves}
            pre 2 Bash; {call}; sh -c 'until [ -e ../home/over ]; do sleep .01; done' & post 2 Bash
            pre 3 Edit f1; sed -i 2iAGENT f1; post 3 Edit f1; touch ../home/over"
        ));
        assert!(commit.contains("+AGENT") && !commit.contains("USER"), "{commit}");
        let users = || repo.sh("git status --porcelain | grep -v f1 || :; grep -h USER f2 f3 new 2>/dev/null || :");
        let theirs = users();
        for way in [&["undo"][..], &["undo", "--only", "1"], &["undo", "--revert"]] {
            let done = repo.oxundo(way);
            done.success();
            assert!(!done.err().contains("changed outside"), "{way:?}: {done:?}");
            assert_eq!(
                (users(), repo.sh("grep -c AGENT f1 || :")),
                (theirs.clone(), "0".to_owned()),
                "{way:?}: {done:?}"
            );
            repo.redo();
        }
        repo.assert_sound();
    });
}

/// By that they say whose it is, whatever call came in between.
#[test]
fn what_the_user_saved_beside_a_command_left_running_and_then_committed_is_theirs() {
    let between = [
        "true",
        "pre 2 Bash; true; post 2 Bash",
        "pre 2 Edit f2; echo AGENT >>f2; post 2 Edit f2",
        "pre 2 Edit f3; true; post 2 Edit f3",
    ];
    let later = ["true", "pre 3 Bash; echo AGENT >>f2; post 3 Bash", "pre 3 Edit f2; echo AGENT >>f2; post 3 Edit f2"];
    let stories = between.into_iter().flat_map(|between| later.map(|later| (between, later)));
    check_all(stories.map(|story| (format!("{story:?}"), story)), |(between, later)| {
        for saves in ["echo USER >>f3", "echo USER >new"] {
            let (repo, _commit) = told(&format!(
                "seq 9 >f3; git add f3; git commit -qm f3
                pre 1 Bash; echo AGENT >>f1; sh -c 'until [ -e ../home/over ]; do sleep .01; done' & post 1 Bash
                {saves}; {between}; git add f3 new 2>/dev/null || git add f3; git commit -qm mine; {later}; touch ../home/over"
            ));
            let mine = repo.git(["log", "--format=%H", "--grep=^mine$"]);
            for way in [&["undo"][..], &["undo", "--only", "1"]] {
                let done = repo.oxundo(way);
                done.success();
                assert_eq!(
                    repo.sh("cat f1 f2 | grep -c AGENT || :; cat f3 new 2>/dev/null | grep -c USER"),
                    "0\n1",
                    "{way:?}"
                );
                assert_eq!(repo.git(["status", "--porcelain"]), "", "{way:?} {saves}: {done:?}");
                repo.git(["merge-base", "--is-ancestor", &mine, "HEAD"]);
                repo.redo();
            }
            repo.assert_sound();
        }
    });
}

/// What is saved then may be its work, and each way to take the turn out says so.
#[test]
fn what_changed_beside_a_command_left_running_is_named_by_each_way_to_take_it_out() {
    for way in [&["undo"][..], &["undo", "--only", "1"], &["undo", "--revert"], &["undo", "--", "f2"]] {
        for next in
            ["true", "pre 2 Edit f2; sed -i 1iAGENT f2; post 2 Edit f2", "pre 2 Bash; sed -i 1iAGENT f2; post 2 Bash"]
        {
            let (repo, _commit) = told(&format!(
                "pre 1 Bash; echo AGENT >>f1; sh -c 'until [ -e ../home/over ]; do sleep .01; done' & post 1 Bash
                echo USER >>f2; {next}; touch ../home/over"
            ));
            let done = repo.oxundo(way);
            done.success();
            done.warns(
                "'f2' changed outside of turn 1's calls, while one may have been at work: what you saved there goes",
            );
        }
    }
}

/// It makes no commits and no branches: these are the user's.
#[test]
fn what_the_user_commits_while_a_command_is_left_running_is_theirs() {
    let later = [
        ":",
        "pre 2 Edit f2; echo AGENT2 >>f2; post 2 Edit f2",
        "pre 2 Bash; echo AGENT2 >>f2; post 2 Bash",
        "pre 2 Bash; echo AGENT2 >>f2; git commit -qam agent; post 2 Bash; pre 3 Edit f2; echo AGENT3 >>f2; post 3 Edit f2",
    ];
    check_all(later.map(|later| (later.to_owned(), later)), |later| {
        let (repo, _commit) = told(&format!(
            "pre 1 Bash; sed -i 's/^10$/AGENT1/' f1
            sh -c 'until [ -e ../home/over ]; do sleep .01; done' &
            post 1 Bash
            echo USER >own; git add own; git commit -qm mine; git branch keep
            {later}; touch ../home/over"
        ));
        let branches = || repo.sh("git for-each-ref --format='%(refname)' refs/heads");
        let there = branches();
        let _ = repo.oxundo(["undo"]);
        assert_eq!(branches(), there);
        assert_eq!(repo.sh("git log --branches --format=%s --grep='^mine$'; git show HEAD:own"), "mine\nUSER");
        repo.assert_sound();
    });
}

/// Each has a server of its own since before its prompt, which the other one never had.
#[test]
fn what_each_of_two_agents_had_before_is_nothing_that_the_others_calls_left_running() {
    let ways = [("Bash", false), ("Edit", false), ("Bash", true)];
    check_all(ways.map(|way| (format!("{way:?}"), way)), |(tool, leaves)| {
        let repo = Sandbox::new();
        let until = "waits_for() { until [ -e ../home/$1 ] || [ ! -e ../home ]; do sleep .01; done; }";
        let until_over = "sh -c 'until [ -e ../home/over ]; do sleep .01; done'";
        let leaves = if *leaves { format!("(CLAUDECODE=1 setsid {until_over} &)") } else { ":".to_owned() };
        let agent = |session: &str, story: &str| {
            let setup = AGENT.split("    for n in 1 2").next().expect("its functions");
            let story =
                format!("set -e\nS={session}\n{setup}\n{until}\nsleep 600 & server=$!\n{story}\nkill $server\n");
            std::fs::write(repo.home().join(session), story).expect("write an agent");
        };
        repo.sh("for n in 1 2; do seq 100 >f$n; done; git add -A; git commit -qm files");
        agent(
            "s",
            "tell UserPromptSubmit s ''; pre 1 Bash; touch ../home/one; waits_for two
            sed -i 's/^10$/AGENT/' f1; post 1 Bash; touch ../home/ended; waits_for over; tell Stop s ''",
        );
        agent(
            "t",
            &format!(
                "waits_for one; tell UserPromptSubmit t ''; pre 2 {tool} f2; sed -i 's/^10$/AGENT/' f2; {leaves}
                post 2 {tool} f2; touch ../home/two; waits_for ended; waits_for over; tell Stop t ''"
            ),
        );
        repo.sh(&format!(
            "{until}
            for one in s t; do git -c \"alias.agent=!sh -e ../home/$one; :\" agent & done
            waits_for ended; sed -i 's/^50$/LATER/' f1; touch ../home/over; wait"
        ));
        let commit = repo.git(["show", "--format="]);
        let is_left = leaves != ":";
        assert_eq!((commit.matches("+AGENT").count(), commit.contains("+LATER")), (2, is_left), "{commit}");
        repo.undo();
        let left = repo.sh("cat f1 f2");
        assert_eq!((left.contains("AGENT"), left.contains("LATER")), (false, !is_left), "{left}");
    });
}

/// A beginning that was lost leaves what its session has told before in force.
#[test]
fn after_a_first_edit_of_which_the_beginning_was_lost_the_users_saves_are_theirs() {
    let (repo, commit) = told(
        "pre 9 Bash; echo 9 >nine; post 9 Bash; tell Stop s ''; tell UserPromptSubmit s ''
        sed -i 's/^10$/AGENT1/' f1; post 1 Edit f1; sed -i 's/^20$/USER1/' f1
        pre 2 Bash; sed -i 's/^30$/AGENT2/' f1; post 2 Bash; sed -i 's/^40$/USER2/' f1",
    );
    // A turn before has to show that its session tells of all its calls.
    assert_eq!((commit.matches("+AGENT").count(), commit.matches("+USER").count()), (2, 0), "{commit}");
    repo.undo();
    let left = repo.sh("cat f1");
    assert_eq!((left.matches("AGENT").count(), left.matches("USER").count()), (0, 2), "{left}");
}

/// Whichever of the two has the lock first: what the user saved before both is in neither.
#[test]
fn an_edit_of_which_the_beginning_was_lost_has_what_it_wrote_though_another_call_began_by_then() {
    check_all(["s", "t"].map(|session| (session.to_owned(), session)), |session| {
        let (repo, commit) = told(&format!(
            "[ {session} = s ] || {{ tell UserPromptSubmit {session} ''; S={session} pre 0 Bash; S={session} post 0 Bash; }}
            sed -i 's/^20$/AGENT1/' f1; sed -i 's/^20$/USER/' f2
            S={session} pre 2 Bash
            post 1 Edit f1
            sed -i 's/^50$/AGENT2/' f1
            S={session} post 2 Bash; [ {session} = s ] || tell Stop {session} ''"
        ));
        assert_eq!((commit.matches("+AGENT").count(), commit.matches("+USER").count()), (2, 0), "{commit}");
        repo.undo();
        let left = repo.sh("cat f1 f2");
        assert_eq!((left.matches("AGENT").count(), left.matches("USER").count()), (0, 1), "{left}");
    });
}

#[test]
fn a_shell_that_ends_as_an_edit_of_its_file_begins_keeps_what_it_wrote_and_nothing_of_the_users() {
    for session in ["s", "t"] {
        for first in ["post 1 Bash", "S=SESSION pre 2 Edit f1"] {
            // The one that comes first waits for the lock, which the other one gets at times.
            let two = if first.starts_with("post") { "S=SESSION pre 2 Edit f1" } else { "post 1 Bash" };
            let begins =
                if session == "t" { "tell UserPromptSubmit t ''; S=t pre 9 Bash; S=t post 9 Bash" } else { "true" };
            let story = format!(
                "{begins}; sed -i 's/^50$/USER/' f1
                pre 1 Bash; sed -i 's/^10$/AGENT1/' f1
                held {} '{first}; echo >../home/first' 'sleep .02; {two}'
                sed -i 's/^20$/AGENT2/' f1; S=SESSION post 2 Edit f1; {}",
                1,
                if session == "t" { "tell Stop t ''" } else { "true" },
            );
            let (repo, commit) = told(&story.replace("SESSION", session));
            assert_eq!(
                (commit.matches("+AGENT").count(), commit.matches("+USER").count()),
                (2, 0),
                "{story}: {commit}"
            );
            let steps = repo.json(["log", "--steps"]).1["turns"][0]["steps"].to_string();
            assert!(steps.contains("\"Bash\"") && steps.contains("\"Edit\""), "a step of each: {steps}");
            repo.undo();
            let left = repo.sh("cat f1");
            assert_eq!((left.matches("AGENT").count(), left.matches("USER").count()), (0, 1), "{story}: {left}");
        }
    }
}
