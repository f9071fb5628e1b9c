//! The timeline screen in a terminal of its own, read as people see it.

use crate::sandbox::{self, Sandbox};
use crate::steps::{hook, story};
use crate::terminal::{Terminal, Watched};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, WaitOptions, kill_process, kill_process_group, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// Three turns, each of which writes a file.
fn three_turns() -> Sandbox {
    let repo = Sandbox::new();
    for (n, message) in [(1, "add a cache"), (2, "\u{6f22}\u{5b57} \u{1f389}"), (3, "make it fast")] {
        let script = format!("echo {n} >file{n}.txt");
        repo.oxundo(["run", "--agent", "claude", "-m", message, "--", "sh", "-c", &script]).success();
    }
    repo
}

/// A command that says what the terminal is set up as before and after it.
fn between(repo: &Sandbox, command: &str) -> Command {
    repo.launched_command(&format!("stty -g; {command}; echo code $?; stty -g"), &[])
}

/// Everything on the terminal is as it was.
fn assert_given_back(watched: &Watched) {
    let screen = watched.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    let text = screen.contents();
    let settings: Vec<&str> = text.lines().filter(|line| line.matches(':').count() > 10).collect();
    assert!(settings.len() == 2 && settings[0] == settings[1], "{text}");
}

#[test]
fn a_turn_is_chosen_on_the_screen_back_and_forward() {
    let repo = three_turns();
    let last = repo.state();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 100, 30);
    screen.shows("Enter: undo turn 3 (claude: make it fast)").shows("delete +0 -1 file3.txt").shows("-3");
    assert!(screen.screen().alternate_screen());
    screen.types("n").shows("Enter: undo turn 3");
    screen.types("/cache").shows("(1 found)").shows("Enter: undo turns 3, 2");
    screen.types("\r\r").shows("do this?").types("n").shows("Enter go").types("\r\r").ends();
    screen.shows("Undid turns 3, 2");
    repo.assert_absent("file2.txt", "it is undone");
    repo.assert_file("file1.txt", "1\n", "it is not");

    let mut screen = Watched::start(repo.oxundo_command(["ui"]), 40, 10);
    screen.shows("[undone]").types("g").shows("Enter: redo turns 2, 3").resize(80, 24).shows("write  +1 -0 file2.txt");
    screen.types("\r\r").ends().shows("Redid turns 2, 3");
    repo.state().assert_is(&last, "and forward");
}

/// What is on the screen, but for ages, and what gets another place or is cut elsewhere by the length of one.
fn ageless(screen: &vt100::Screen) -> String {
    let line = |line: &str| {
        let line = line.trim_end();
        let line = line.rsplit_once("  ").filter(|(_, age)| age.ends_with(" ago")).map_or(line, |(before, _)| before);
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        let words: Vec<&str> =
            rest.split_whitespace().map(|word| if word.ends_with('~') { "~" } else { word }).collect();
        format!("{indent}{}", words.join(" "))
    };
    screen.contents().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn steps_and_rescues_are_folded_below_their_turn() {
    let repo = story(sandbox::Mode::Commit);
    hook(&repo, "s", "Stop", &json!({}));
    hook(&repo, "s", "SessionEnd", &json!({}));
    repo.undo();
    repo.redo();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 80, 22);
    // Before the rescues are read, and before anything is: no key is lost.
    screen.types("gl").shows("before undo 1").shows("1.4").shows("nothing to undo");
    let path = format!("{}/tests/it/fixtures/screen-steps.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("OXUNDO_BLESS").is_some() {
        screen.shows("before the first turn").shows("the last one done");
        std::fs::write(&path, ageless(screen.screen()) + "\n").expect("write a golden screen");
    }
    let golden = std::fs::read_to_string(&path).expect("read a golden screen");
    // A picture comes in pieces.
    screen.until(&golden, |screen| ageless(screen) + "\n" == golden);
    screen.types("h").until("they are folded", |screen| !screen.contents().contains("1.4")).types("q").ends();
}

#[test]
fn what_is_refused_is_said_before_anything_is_chosen() {
    let repo = three_turns();
    repo.write("file3.txt", "mine\n");
    let before = repo.everything();
    let mut screen = Watched::start(repo.oxundo_command(["undo", "-i"]), 80, 24);
    screen.shows("refused: undo would overwrite changes in 'file3.txt'").types("\r\r").shows("this cannot be done now");
    // A key right behind Escape would be one with it.
    screen
        .types("\x1b")
        .until("back", |screen| !screen.contents().contains("this cannot be done now"))
        .types("q")
        .ends();
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn whoever_is_asked_has_all_of_it_before_their_eyes() {
    let repo = three_turns();
    repo.write("file3.txt", "mine\n");
    let mut screen = Watched::start(repo.oxundo_command(["undo", "-i"]), 40, 10);
    screen.shows("refused: undo").types("\r").until("the refusal and its hints", |screen| {
        let words = screen.contents().split_whitespace().collect::<Vec<_>>().join(" ");
        words.contains("refused: undo would overwrite changes in 'file3.txt'") && words.contains("oxundo diff")
    });
    screen.types("\x1b").until("back", |screen| !screen.contents().contains("file3.txt")).types("q").ends();
}

#[test]
fn what_moved_since_it_was_shown_is_not_done() {
    let repo = three_turns();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 80, 24);
    screen.shows("Enter: undo turn 3").types("\r").shows("do this?");
    repo.sh("rm file3.txt");
    let before = repo.everything();
    screen.types("\r").shows("something else has changed: look again");
    repo.everything().assert_is(&before, "what was shown is not what would be done now");
    screen.types("\r").shows("do this?").types("n").shows("Enter go").types("q").ends();
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn what_others_do_meanwhile_is_on_the_screen() {
    let repo = three_turns();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 80, 24);
    screen.shows("Enter: undo turn 3").types("\r").shows("do this?");
    repo.agent("echo 4 >file4.txt");
    screen.shows("something else has changed: look again").shows("4 turns").shows("Enter: undo turns 4, 3");
    // The answer was to what is not asked any more.
    screen.types("y").shows("Enter go");
    repo.commit("theirs.txt", "theirs\n");
    let before = repo.everything();
    screen.shows("refused: ").types("q").ends();
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn what_was_recorded_meanwhile_is_planned_anew_and_counts() {
    let repo = three_turns();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 100, 30);
    screen.shows("Enter: undo turn 3");
    repo.agent("echo 4 >file4.txt");
    // Whether it was seen before the key or after it.
    screen.types("cgood\r").shows("checkpoint 'good'").shows("Enter: undo turns 4, 3");
    screen.types("/nowhere\r").shows("(0 found)").shows("nothing is found");
    screen.types("\x1b").shows("nothing to undo").types("q").shows("Nothing else is changed").ends();
    assert!(repo.oxundo(["checkpoint", "--list"]).out().contains("good"));
}

#[test]
fn an_open_turn_is_what_undo_takes_back_first() {
    let repo = three_turns();
    repo.oxundo(["turn", "begin", "--session", "s", "--agent", "claude"]).success();
    repo.sh("echo 4 >file4.txt");
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 100, 30);
    screen.shows("Enter: undo turn 4 ").types("q").ends();
}

#[test]
fn a_repository_that_is_gone_is_not_made_anew() {
    for keys in ["cgood\r", "\r\r"] {
        let repo = three_turns();
        let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 100, 30);
        screen.shows("Enter: undo turn 3").shows("-3");
        std::fs::remove_dir_all(repo.path(".git")).expect("it is deleted");
        // Whoever sees it first says so.
        screen.types(keys).shows("error: ").ends();
        assert!(!repo.exists(".git"));
    }
}

#[test]
fn what_interrupts_the_pager_leaves_the_screen_alone() {
    let repo = three_turns();
    // It goes on after an interruption, as pagers do.
    repo.git([
        "config",
        "core.pager",
        "sh -c 'trap : INT; cat >/dev/null; echo paged; until read key </dev/tty; do :; done'",
    ]);
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 100, 30);
    screen.shows("Enter: undo turn 3").types("v").shows("paged").types("\x03").types("\r");
    screen.shows("Enter: back").types("\x03").shows("Enter: undo turn 3").types("q");
    screen.shows("Nothing is changed").ends();
}

#[test]
fn a_signal_while_the_pager_has_the_terminal_ends_the_screen_with_it() {
    let repo = three_turns();
    repo.git(["config", "core.pager", "cat >/dev/null; echo paged; until read key </dev/tty; do :; done"]);
    let command = "sh -c 'echo $$ >../pid; exec \"$0\" rewind' \"$0\"";
    let mut screen = Watched::start(between(&repo, command), 120, 30);
    // The screen itself shows the difference, too: in its hands a key would not be the pager's.
    screen.shows("Enter: undo turn 3").types("v").shows("paged");
    repo.sh("kill -TERM $(cat ../pid)");
    // As of git's own commands, the pager is left first.
    screen.types("\r").shows("Enter: back").types("\r").ends();
    assert!(screen.screen().contents().contains("code 143"), "{}", screen.screen().contents());
    assert_given_back(&screen);
}

#[test]
fn what_fits_on_one_screen_is_read_before_the_pager_goes() {
    let repo = three_turns();
    repo.git(["config", "core.pager", "echo options $LESS; cat; read key </dev/tty"]);
    for (user, options) in [(None, "FRX -+F"), (Some("-FRi"), "-FRi -+F")] {
        let mut command = repo.oxundo_command(["rewind"]);
        command.env_remove("LESS").envs(user.map(|user| ("LESS", user)));
        let mut screen = Watched::start(command, 100, 30);
        screen.shows("Enter: undo turn 3").types("v").shows(&format!("options {options}")).types("\r");
        screen.shows("Enter: back").types("\r").shows("Enter: undo turn 3").types("q").ends();
    }
}

#[test]
fn what_does_not_wait_is_read_before_the_screen_comes_back() {
    let repo = three_turns();
    for (key, value) in [("core.pager", "cat"), ("pager.diff", "sed s/^/paged./"), ("pager.diff", "false")] {
        repo.git(["config", key, value]);
        let mut command = repo.oxundo_command(["rewind"]);
        command.env_remove("GIT_PAGER").env_remove("PAGER");
        let mut screen = Watched::start(command, 100, 30);
        screen.shows("Enter: undo turn 3").types("v").shows("Enter: back to the timeline");
        let text = screen.screen().contents();
        assert!(
            text.contains("diff --git a/file3.txt") && text.contains("paged.") == value.contains("paged"),
            "{text}"
        );
        screen.types("\r").shows("Enter: undo turn 3").types("q").ends();
    }
}

#[test]
fn no_key_is_lost_while_the_size_changes() {
    let repo = three_turns();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 100, 30);
    screen.shows("Enter: undo turn 3");
    for round in 0..100 {
        let (key, height, shown) =
            if round % 2 == 0 { ("?", 29, "this help") } else { ("x", 30, "Enter: undo turn 3") };
        screen
            .resize(100, height)
            .types(key)
            .until(shown, |screen| screen.contents().contains("this help") == (round % 2 == 0));
    }
    screen.types("q").ends();
}

#[test]
fn each_way_out_gives_the_terminal_back() {
    let repo = three_turns();
    let before = repo.state();
    for (keys, code) in [("\x1b", 130), ("\x03", 130), ("q", 130), ("\rnq", 130)] {
        let mut screen = Watched::start(between(&repo, "\"$0\" rewind"), 120, 30);
        screen.shows("Enter: undo turn 3").types(keys).ends();
        assert!(screen.screen().contents().contains(&format!("code {code}")), "{keys:?}");
        assert_given_back(&screen);
    }
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131)] {
        let command = "sh -c 'echo $$ >../pid; exec \"$0\" rewind' \"$0\"";
        let mut screen = Watched::start(between(&repo, command), 120, 30);
        screen.shows("Enter: undo turn 3");
        repo.sh(&format!("kill -{signal} $(cat ../pid)"));
        screen.ends();
        assert!(
            screen.screen().contents().contains(&format!("code {code}")),
            "{signal}: {}",
            screen.screen().contents()
        );
        assert_given_back(&screen);
    }
    repo.state().assert_is(&before, "nothing is changed");
}

/// Both ends of a new terminal that is nobody's.
pub(crate) fn opened_terminal() -> io::Result<(File, File)> {
    let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    // Else whoever runs inside keeps it open.
    fcntl_setfd(&outside, FdFlags::CLOEXEC)?;
    grantpt(&outside)?;
    unlockpt(&outside)?;
    tcsetwinsize(&outside, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 })?;
    let name = ptsname(&outside, Vec::new())?;
    let inside = openat(CWD, &name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((outside.into(), inside.into()))
}

#[test]
fn it_ends_with_its_terminal_whether_or_not_anybody_tells_it() {
    let repo = three_turns();
    // Of a terminal that is not its own nobody tells.
    let (mut outside, inside) = opened_terminal().expect("open a terminal");
    let end = || Stdio::from(inside.try_clone().expect("one more end of the terminal"));
    let mut command = repo.launched_command("exec timeout 60 \"$0\" rewind", &[]);
    let mut child = command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().expect("start it");
    drop((command, inside));
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("undo turn 3") {
        let mut part = [0; 4096];
        let n = outside.read(&mut part).expect("read what it shows");
        shown.extend(&part[..n]);
    }
    drop(outside);
    let status = child.wait().expect("wait");
    // `timeout` ends as what it ran did; after a minute it would be 124.
    assert_eq!(status.signal(), Some(Signal::HUP.as_raw()), "{status}");
}

#[test]
fn while_git_asks_the_terminals_key_stops_the_screen_with_it() {
    let repo = three_turns();
    repo.agent("echo more >>file1.txt");
    let before = repo.state();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 100, 30);
    screen.shows("Enter: undo turn 4").types("P").shows("[y,n,q").types("\x1a");
    let (_, status) = waitpid(Some(screen.pid()), WaitOptions::UNTRACED).expect("wait").expect("it stops");
    assert!(status.stopped());
    // As the shell has all of a job go on.
    kill_process_group(screen.pid(), Signal::CONT).expect("have it go on");
    screen.types("q\r").shows("Enter: undo turn 4").types("q").shows("Nothing is changed").ends();
    repo.state().assert_is(&before, "nothing is changed");
}

#[test]
fn the_shell_has_the_terminal_while_the_screen_is_suspended() {
    let repo = three_turns();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 80, 24);
    screen.shows("Enter: undo turn 3").types("\x1a");
    let (_, status) = waitpid(Some(screen.pid()), WaitOptions::UNTRACED).expect("wait").expect("it stops");
    assert!(status.stopped());
    screen.until("the terminal is given back", |screen| !screen.alternate_screen());
    kill_process(screen.pid(), Signal::CONT).expect("have it go on");
    screen.until("it is drawn again", |screen| screen.alternate_screen() && screen.contents().contains("Enter: undo"));
    screen.types("q").ends();
}

#[test]
fn the_difference_is_shown_in_the_users_pager() {
    let repo = three_turns();
    repo.sh("git config core.pager 'sed s/^/paged./; read key </dev/tty'");
    let mut command = repo.oxundo_command(["rewind"]);
    command.env_remove("GIT_PAGER").env_remove("PAGER");
    let mut screen = Watched::start(command, 80, 24);
    screen.shows("file3.txt").types("v").shows("paged.-3").types("\r").shows("Enter: back").types("\r");
    screen
        .shows("Enter: undo turn 3")
        .types("cgood\r")
        .shows("checkpoint 'good'")
        .types("dall of it\r")
        .shows("claude: all of it");
    screen.types("oy").ends().shows("Took out turn 2");
    assert_eq!(repo.json(["checkpoint", "--list"]).1["checkpoints"][0]["name"], "good");
}

#[test]
fn git_asks_what_to_bring_back_and_the_answers_are_a_plan_that_is_shown() {
    let repo = three_turns();
    repo.agent("seq 30 >file1.txt");
    repo.agent("sed -i '3s/.*/three/;20s/.*/twenty/' file1.txt");
    let before = repo.state();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 90, 30);
    screen.shows("Enter: undo turn 5").shows("write  +2 -2 file1.txt").types("P");
    screen.shows("(1/2) Apply this hunk to worktree").types("n\r").shows("(2/2)").types("y\r");
    screen.shows("do this?").shows("Enter: restore the files of 4: 1 file").shows("+1 -1 file1.txt").types("y").ends();
    assert_eq!(repo.sh("sed -n '3p;20p' file1.txt"), "three\n20");
    repo.undo();
    repo.state().assert_is(&before, "it is a turn like any other");
}

#[test]
fn a_terminal_without_a_size_gets_a_numbered_list() {
    let repo = three_turns();
    // Once it has got one.
    let mut terminal = Terminal::start(between(&repo, "echo ready; read go; stty rows 0 cols 0; \"$0\" rewind"));
    terminal
        .shows("ready")
        .types("\r")
        .shows("[now]")
        .shows("Go to the state")
        .types("\r")
        .shows("Nothing is changed")
        .shows("code 130");
}

#[test]
fn a_terminal_of_lines_gets_a_numbered_list() {
    let repo = three_turns();
    let mut terminal = Terminal::start_as(repo.oxundo_command(["rewind"]), "dumb");
    terminal.shows("3  ").shows("[now]").shows("before the first turn").shows("Go to the state").types("2\r");
    terminal.shows("Would undo turn 3").shows("Go there?").types("y\r").shows("Undid turn 3").shows_end();
    let mut terminal = Terminal::start_as(repo.oxundo_command(["rewind"]), "dumb");
    terminal.shows("[undone]").types("\r");
    let all = terminal.all();
    assert!(all.contains("Nothing is changed") && !all.contains('\x1b'), "{all:?}");
}

#[test]
fn what_a_refusal_leads_to_is_for_the_row_that_was_chosen() {
    let repo = three_turns();
    repo.git(["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 160, 30);
    screen.shows("oxundo undo --revert --to 2").types("G").shows("oxundo undo --revert --to 0").types("q").ends();
}

#[test]
fn a_file_that_was_not_there_is_told_to_be_that() {
    let repo = three_turns();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 160, 30);
    screen.shows("Enter: undo turn 3").types("\tp").shows("'file3.txt' was not there then");
    screen.shows("oxundo undo --to 2 -- ").types("qq").ends();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 160, 30);
    screen.shows("Enter: undo turn 3").types("\tP").shows("'file3.txt' was not there then").types("qq").ends();
}

#[test]
fn the_help_can_be_read_on_a_small_screen() {
    let repo = three_turns();
    let mut screen = Watched::start(repo.oxundo_command(["rewind"]), 40, 10);
    screen.shows("undo turn 3").types("?").shows("undo or redo until").shows("turn is the last one done");
    screen.types("G").shows("leave, with nothing").shows("changed").types("qq").ends();
}
