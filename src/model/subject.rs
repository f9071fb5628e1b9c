//! What of a prompt git may keep and print: its first line, without what looks like a password, a token or a key.
//! Where it is in doubt, it is taken out: the whole prompt is in the turn's record.

use crate::model::tokens::Tokens;
use std::ops::Range;

/// What stands in the place of a secret.
const REMOVED: &str = "***";

/// A subject of more characters than this is cut.
const LONGEST: usize = 500;

/// A key begins with this, and goes on for many lines.
const PEM: &str = "-----BEGIN ";

/// What is assigned to a name with one of these in it is a secret.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "accountkey",
    "passwort",
    "kennwort",
    "credential",
    "amzsignature",
    "googsignature",
];

/// Whoever knows such an address may write there: what follows is the secret.
const WEBHOOKS: &[&str] =
    &["hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", ".webhook.office.com/"];

/// After these, as the value of a name, the secret is the next word.
const SCHEMES: &[&str] = &["bearer", "basic", "token", "digest"];

/// The prompt's first line, cleaned; none where nothing is left of it or where it would pass for a trailer.
/// `tokens` are globs of words that are secrets, `trailer` is the name of oxundo's own.
pub fn subject_of_prompt(prompt: &str, tokens: &Tokens, trailer: &str) -> Option<String> {
    let line = prompt.split(is_line_end).map(str::trim).find(|line| !line.is_empty())?;
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = without_secrets(&line, tokens);
    let says_something = line.replace(REMOVED, "").chars().any(char::is_alphanumeric);
    (says_something && !is_trailer(&line, trailer)).then(|| shortened(line))
}

/// As Unicode and terminals have it.
fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn shortened(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}

/// Whether others would take the line for a trailer: somebody's consent must not come out of a prompt. A line such as
/// `fix: the parser` is none.
fn is_trailer(line: &str, own: &str) -> bool {
    let Some((name, _)) = line.split_once(':') else { return false };
    let name = name.trim_end().to_ascii_lowercase();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_known = name.ends_with("-by") || name == "change-id" || name == "cc";
    is_name && (is_known || name == own.trim().to_ascii_lowercase())
}

fn without_secrets(line: &str, tokens: &Tokens) -> String {
    let line = line.find(PEM).map_or_else(|| line.to_owned(), |start| format!("{}{REMOVED}", &line[..start]));
    let line = removed(&line, assigned(&line));
    let line = removed(&line, in_addresses(&line));
    let line = removed(&line, in_commands(&line));
    let line = removed(&line, words(&line, is_of_name).filter(|at| is_token(&line[at.clone()], tokens)).collect());
    let line = removed(&line, words(&line, is_of_base64).filter(|at| is_random(&line[at.clone()])).collect());
    // Behind a name that says whose it is, and a sign.
    removed(&line, words(&line, |c| c.is_ascii_alphanumeric()).filter(|at| is_random(&line[at.clone()])).collect())
}

fn removed(line: &str, secrets: Vec<Range<usize>>) -> String {
    let (mut text, mut from) = (String::new(), 0);
    for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
        text.push_str(&line[from..secret.start]);
        text.push_str(REMOVED);
        from = secret.end;
    }
    text.push_str(&line[from..]);
    text
}

/// The words made of such characters.
fn words(line: &str, is_of: fn(char) -> bool) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + line[from..].find(is_of)?;
        let end = line[start..].find(|c| !is_of(c)).map_or(line.len(), |length| start + length);
        from = end;
        Some(start..end)
    })
}

/// What is assigned to a name that says it: `password=x`, `"api_key": "x"`, `--token x`, `<password>x</password>`.
fn assigned(line: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for name in words(line, is_of_name) {
        if found.last().is_some_and(|last| name.start < last.end) || !is_secret_name(&line[name.clone()]) {
            continue;
        }
        let is_option = line[name.clone()].starts_with("--");
        if line[..name.start].ends_with('<') && line[name.end..].starts_with('>') {
            let inside = name.end + 1;
            found.push(inside..line[inside..].find('<').map_or(line.len(), |length| inside + length));
        } else if let Some(start) = value_after(line, name.end, is_option) {
            found.extend(Some(value(line, start)).filter(|at| !stands_for_one(&line[at.clone()])));
        } else if let Some(start) = told_after(line, name.end) {
            found.extend(Some(value(line, start)).filter(|at| !is_plain_word(line, at)));
        }
    }
    found
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if ["pass", "pw"].iter().any(|word| name == *word || name.ends_with(&format!("_{word}"))) || name == "dbpass" {
        return true;
    }
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = name.strip_suffix('s').unwrap_or(name);
    name == "authorization" || SECRET_NAMES.iter().any(|word| name.ends_with(word))
}

/// Whether a value is none, or the name of what has it.
fn stands_for_one(value: &str) -> bool {
    let word = value.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '{');
    let is_of_variable = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_variable = |name: &str| name.starts_with('{') || (!name.is_empty() && name.chars().all(is_of_variable));
    ["none", "null", "nil", "true", "false", "undefined", "string", "str"].contains(&word.to_ascii_lowercase().as_str())
        || word.strip_prefix('$').is_some_and(is_variable)
        || ["os.environ", "process.env"].iter().any(|name| word.starts_with(name))
}

/// Where the value begins that is assigned to the name before.
fn value_after(line: &str, end: usize, is_option: bool) -> Option<usize> {
    let rest = line[end..].trim_start_matches(['"', '\'', '`', '\\']);
    let sign = rest.trim_start();
    let value = match sign.strip_prefix(":=").or_else(|| sign.strip_prefix("=>")) {
        Some(value) => value,
        None => match sign.strip_prefix(['=', ':']) {
            Some(value) => value,
            None if is_option && sign.len() < rest.len() => sign,
            None => return None,
        },
    };
    Some(line.len() - value.trim_start().len())
}

/// Where the word begins that a sentence says the name before is: `the password is x`.
fn told_after(line: &str, end: usize) -> Option<usize> {
    let rest = line[end..].strip_prefix(' ')?;
    let word = ["is ", "was ", "ist "].iter().find_map(|verb| rest.strip_prefix(verb))?;
    Some(line.len() - word.trim_start().len())
}

/// Whether a sentence goes on with a word of a language or a number, as in `the password is wrong`: no quotes, and letters alone, or
/// few characters.
fn is_plain_word(line: &str, at: &Range<usize>) -> bool {
    let is_quoted = line[..at.start].ends_with(['"', '\'', '`']);
    let word = line[at.clone()].trim_end_matches(['.', ',', ';', '!', '?', ')', ':']);
    !is_quoted && (word.chars().count() < 5 || word.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\''))
}

/// The value that begins here: to its closing quote, or to the word's end.
fn value(line: &str, start: usize) -> Range<usize> {
    let rest = &line[start..];
    if let Some(quote) = escaped_quote(rest) {
        let inside = start + quote.len();
        return inside..line[inside..].find(quote).map_or(line.len(), |length| inside + length);
    }
    let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else {
        let end = start + rest.find(char::is_whitespace).unwrap_or(rest.len());
        let next = line.len() - line[end..].trim_start().len();
        let is_scheme = SCHEMES.contains(&line[start..end].to_ascii_lowercase().as_str());
        return if is_scheme && next > end { value(line, next) } else { start..end };
    };
    let inside = start + quote.len_utf8();
    let mut is_escaped = false;
    let is_end = |c: char| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    };
    inside..line[inside..].find(is_end).map_or(line.len(), |length| inside + length)
}

/// A quote as it stands in what is quoted itself, with all that is before it.
fn escaped_quote(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('\\');
    let length = text.len() - rest.len();
    (length > 0 && rest.starts_with(['"', '\''])).then(|| &text[..=length])
}

/// The passwords in addresses: `https://name:password@host`, and what of an address is one.
fn in_addresses(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("://") {
        let start = at + 3;
        let word = &line[start..];
        let word = &word[..word.find([' ', '"', '\'', '`']).unwrap_or(word.len())];
        if let Some(behind) = WEBHOOKS.iter().find_map(|name| Some(word.find(name)? + name.len())) {
            found.push(start + behind..start + word.len());
            continue;
        }
        let host = &word[..word.find(['/', '?', '#']).unwrap_or(word.len())];
        // Whatever stands in a password, it goes to the last sign of its end; what follows a host may be a port.
        let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let password = host.split_once(':').filter(|(_, rest)| rest.contains('@') || !is_port(rest));
        match (password, word.rfind('@'), host.rfind('@')) {
            (Some((name, _)), Some(end), _) if end > name.len() => found.push(start + name.len() + 1..start + end),
            // A token that is given as the name: a short one is a name.
            (_, _, Some(end)) if end >= 16 => found.push(start..start + end),
            _ => {}
        }
    }
    found
}

/// The passwords that programs take with a name (`curl -u name:password`), by an option, or from SQL; and before a host.
fn in_commands(line: &str) -> Vec<Range<usize>> {
    let spaced: Vec<Range<usize>> = words(line, |c| !c.is_whitespace()).collect();
    let mut found = Vec::new();
    for (at, word) in spaced.iter().enumerate() {
        let before =
            |back: usize| at.checked_sub(back).and_then(|at| spaced.get(at)).map_or("", |at| &line[at.clone()]);
        let text = &line[word.clone()];
        let (whole, behind) = (word.clone(), |sign: char| text.find(sign).map(|at| word.start + at + 1..word.end));
        let is_mysql = |name: &str| name.starts_with("mysql");
        if ["-u", "--user"].contains(&before(1)) {
            found.extend(behind(':'));
        } else if before(1) == "-p" && (before(2) == "sshpass" || before(3) == "login" || before(4) == "login") {
            found.push(whole);
        } else if text.len() > 2 && text.starts_with("-p") && (1..=4).any(|back| is_mysql(before(back))) {
            found.push(word.start + 2..word.end);
        } else if before(1).eq_ignore_ascii_case("by") && before(2).eq_ignore_ascii_case("identified") {
            found.push(whole);
        } else if let Some((name, rest)) = text.split_once(':')
            && !name.is_empty()
            && !name.eq_ignore_ascii_case("mailto")
            && !rest.starts_with("//")
            && let Some(end) = rest.rfind('@').filter(|end| *end > 0)
        {
            let start = word.start + name.len() + 1;
            found.push(start..start + end);
        }
    }
    found
}

/// Whether a word has a form that tokens are known by.
fn is_token(word: &str, tokens: &Tokens) -> bool {
    tokens.is_match(word) || tokens.is_match(word.trim_matches(['.', '-', '_']))
}

/// Whether a word looks as if nobody had thought of it: long, and of letters and digits in no order.
fn is_random(word: &str) -> bool {
    let letters: Vec<char> = word.chars().filter(char::is_ascii_alphanumeric).collect();
    let has = |is: fn(&char) -> bool| letters.iter().any(is);
    let has_digit = has(char::is_ascii_digit);
    let is_mixed = has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
    let others = word.trim_end_matches('=').len() - letters.len();
    if others * 8 > letters.len() {
        // A path, or words with hyphens.
        return false;
    }
    let changes = letters.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    let is_often = |percent: usize| changes * 100 >= percent * (letters.len() - 1);
    if letters.len() < 24 || !has_digit {
        return false;
    }
    if is_mixed { is_often(45) } else { letters.len() >= 32 && others == 0 && is_often(20) }
}

fn class(c: char) -> u8 {
    match c {
        '0'..='9' => 0,
        'a'..='z' => 1,
        _ => 2,
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn is_of_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '_' | '-' | '=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens() -> Tokens {
        let mut tokens = Tokens::default();
        for glob in crate::config::keys::default("secretText").split_whitespace() {
            tokens.add(glob).expect("the defaults are globs");
        }
        tokens
    }

    fn subject(prompt: &str) -> Option<String> {
        subject_of_prompt(prompt, &tokens(), "Assisted-by")
    }

    /// Letters and digits as a machine makes them, so that none of these stands here as it would elsewhere.
    fn random(length: usize) -> String {
        "q7Rk2ZtP9wX4mB6vL1nC8sD3gH5jF0yT".chars().cycle().take(length).collect()
    }

    #[test]
    fn the_first_line_that_says_something_is_kept() {
        for (prompt, kept) in [
            ("\n  add a cache \nand more", "add a cache"),
            ("one\rSigned-off-by: A <a@b>", "one"),
            ("one\u{2028}two", "one"),
            ("a\ttab", "a tab"),
            ("fix: the parser", "fix: the parser"),
            ("Note: see docs/agents.md", "Note: see docs/agents.md"),
            ("rename src/components/UserProfile2Page.tsx", "rename src/components/UserProfile2Page.tsx"),
            ("AbstractSingletonProxyFactoryBean2 has a test", "AbstractSingletonProxyFactoryBean2 has a test"),
            ("use sk-learn-compatible-estimators", "use sk-learn-compatible-estimators"),
            ("the tokenizer: make it fast", "the tokenizer: make it fast"),
            ("resume 0b9c2f6e-1d3a-4c5b-8e7f-9a0b1c2d3e4f", "resume 0b9c2f6e-1d3a-4c5b-8e7f-9a0b1c2d3e4f"),
            (
                "the password is wrong, the token was expired, the passcode is 4 long",
                "the password is wrong, the token was expired, the passcode is 4 long",
            ),
            ("clone ssh://git@example.com/a", "clone ssh://git@example.com/a"),
            ("add-user-V2-api-for-X3-and-Y4-b5", "add-user-V2-api-for-X3-and-Y4-b5"),
        ] {
            assert_eq!(subject(prompt).as_deref(), Some(kept), "{prompt:?}");
        }
    }

    #[test]
    fn well_known_tokens_are_taken_out_wherever_they_stand() {
        let (capitals, long) = (random(16).to_uppercase(), random(40));
        let known = [
            format!("AKIA{capitals}"),
            format!("ghp_{long}"),
            format!("github_pat_{long}"),
            format!("glpat-{}", random(20)),
            format!("xoxb-{}-{}", random(12), random(12)),
            format!("sk-ant-api03-{long}"),
            format!("sk-proj-{long}"),
            // A short one, as in an example, with no digit but in its name.
            "sk-ant-api03-AAAAbbbbCCCCddddEEEEffff".to_owned(),
            format!("sk_live_{}", random(24)),
            format!("AIza{}", random(35)),
            format!("eyJ{}.eyJ{}.{}", random(20), random(20), random(20)),
            format!("npm_{long}"),
            format!("hf_{}", random(34)),
            format!("sbp_{long}"),
            format!("rubygems_{long}"),
            format!("AGE-SECRET-KEY-1{}", long.to_uppercase()),
        ];
        for token in known {
            for (before, after) in
                [("use ", " here"), ("use \"", "\","), ("use (", ")."), ("X=", ""), ("https://h/", "/x")]
            {
                let found = subject(&format!("now {before}{token}{after}"));
                assert_eq!(found, Some(format!("now {before}***{after}")), "{token}");
            }
        }
    }

    #[test]
    fn what_is_assigned_to_a_secret_name_is_taken_out() {
        for (prompt, kept) in [
            ("log in with password=hunter2 please", "log in with password=*** please"),
            ("log in, password: hunter2", "log in, password: ***"),
            ("send {\"api_key\": \"h u\", \"a\": 1}", "send {\"api_key\": \"***\", \"a\": 1}"),
            ("run x --token abc", "run x --token ***"),
            ("log in, the password is hunter2.", "log in, the password is ***"),
            ("log in, the password was 'swordfish' once", "log in, the password was '***' once"),
            ("run x --token=abc", "run x --token=***"),
            ("export DB_PASSWORD='a b' and go", "export DB_PASSWORD='***' and go"),
            ("set secret := x", "set secret := ***"),
            ("curl -H 'Authorization: Bearer abc' it", "curl -H 'Authorization: Bearer *** it"),
            ("clone https://me:hunter2@example.com/a", "clone https://me:***@example.com/a"),
            (r#"send {"password":"a\"hunter2"} now"#, r#"send {"password":"***"} now"#),
            (r#"set password="a\\" now"#, r#"set password="***" now"#),
            ("clone https://me:hun@ter2@example.com/a", "clone https://me:***@example.com/a"),
            ("open postgres://me:h@u/nt#e?r2@h/db now", "open postgres://me:***@h/db now"),
            ("see http://localhost:8080/a?b=c@d", "see http://localhost:8080/a?b=c@d"),
            ("write -----BEGIN OPENSSH PRIVATE KEY----- abc", "write ***"),
            ("ssh bob:hunter2@example.com now", "ssh bob:***@example.com now"),
            ("curl -u bob:hunter2 https://h/x", "curl -u bob:*** https://h/x"),
            ("sshpass -p hunter2 ssh h", "sshpass -p *** ssh h"),
            ("docker login -u bob -p hunter2 h", "docker login -u bob -p *** h"),
            ("mysql -u root -phunter2 db", "mysql -u root -p*** db"),
            ("create user b identified by 'hunter2'", "create user b identified by ***"),
            ("set password=None and token: $TOKEN", "set password=None and token: $TOKEN"),
            ("set secret: true, token: ${{ secrets.X }}", "set secret: true, token: ${{ secrets.X }}"),
            ("write to git@github.com:owner/repo", "write to git@github.com:owner/repo"),
            ("set dbpass=hunter2 and pw=x", "set dbpass=*** and pw=***"),
            ("set SECRET_KEY=hunter2 now", "set SECRET_KEY=*** now"),
            ("set password1=hunter2 now", "set password1=*** now"),
            (r#"send "{\"password\": \"hunter2\", \"a\": 1}""#, r#"send "{\"password\": \"***\", \"a\": 1}""#),
            (r#"send {\\\"token\\\":\\\"a b\\\"}"#, r#"send {\\\"token\\\":\\\"***\\\"}"#),
            ("the <password>a b</password> of it", "the <password>***</password> of it"),
            ("get https://h/x?X-Amz-Signature=abc now", "get https://h/x?X-Amz-Signature=*** now"),
            (
                "post to https://hooks.slack.com/services/T0/B0/abc, please",
                "post to https://hooks.slack.com/*** please",
            ),
            ("post to 'https://discord.com/api/webhooks/1/a-b_c'", "post to 'https://discord.com/api/webhooks/***'"),
        ] {
            assert_eq!(subject(prompt).as_deref(), Some(kept), "{prompt:?}");
        }
    }

    #[test]
    fn long_words_in_no_order_are_taken_out() {
        for secret in [
            random(40),
            random(24),
            "9f86d081884c7d659a2feaa0c55ad015".to_owned(),
            format!("{}/{}+{}=", random(12), random(9), random(17)),
        ] {
            assert_eq!(subject(&format!("try {secret} now")).as_deref(), Some("try *** now"), "{secret}");
        }
        for name in ["key-", "acme_live_", "a/b/"] {
            let prompt = format!("try {name}9f86d081884c7d659a2feaa0c55ad015 now");
            assert_eq!(subject(&prompt), Some(format!("try {name}*** now")));
        }
    }

    #[test]
    fn what_would_pass_for_a_trailer_or_says_nothing_is_no_subject() {
        for prompt in [
            "Signed-off-by: A <a@example.com>",
            "co-authored-by : B <b@example.com>\nadd a cache",
            "Change-Id: I1234",
            "Assisted-by: nobody",
            "",
            " \n\t\n",
            "!!! ???",
            "-----BEGIN RSA PRIVATE KEY-----\nabc",
            "\u{1}\u{2}",
        ] {
            assert_eq!(subject(prompt), None, "{prompt:?}");
        }
        assert_eq!(subject(&format!("ghp_{}", random(36))), None);
    }

    #[test]
    fn a_long_line_is_cut() {
        let cut = subject(&"é ".repeat(10_000)).expect("it has a subject");
        assert!(cut.chars().count() == LONGEST + 3 && cut.ends_with("..."));
    }

    proptest! {
        #[test]
        fn any_prompt_gives_one_line_without_control_characters(prompt in "(?s).{0,200}|[-a-z:=\"'@/ \n]{0,80}|(password|token|https://a:|--secret)[ =:\"']{0,3}.{0,40}") {
            if let Some(subject) = subject(&prompt) {
                prop_assert!(!subject.is_empty() && !subject.chars().any(char::is_control), "{subject:?}");
            }
        }
    }
}
