//! A terminal for programs to run in, and someone who types on it. When it is dropped, it is closed.

use expectrl::Expect;
use expectrl::session::OsSession;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A program in a terminal of its own, 80 columns wide.
pub(crate) struct Terminal(OsSession);

impl Terminal {
    /// Starts a program, as the leader of a session whose terminal this is.
    pub(crate) fn start(command: Command) -> Self {
        Self::start_as(command, "xterm")
    }

    /// Starts a program in a terminal of this kind.
    pub(crate) fn start_as(mut command: Command, kind: &str) -> Self {
        command.env("TERM", kind).stdin(Stdio::inherit());
        let mut session = OsSession::spawn(command).expect("start a program in a terminal");
        session.get_process_mut().set_window_size(80, 24).expect("set the terminal's size");
        session.set_expect_timeout(Some(Duration::from_secs(60)));
        Self(session)
    }

    /// Types some text; `\x03` is what ctrl-c sends.
    pub(crate) fn types(&mut self, text: &str) -> &mut Self {
        self.0.send(text).expect("type");
        self
    }

    /// Waits until this is shown, behind what was waited for before; gives what was shown until then.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) -> &mut Self {
        if let Err(error) = self.0.expect(text) {
            let mut shown = [0; 4096];
            let n = self.0.try_read(&mut shown).unwrap_or_default();
            panic!("the terminal shows {text:?}: {error}; it shows: {}", shown[..n].escape_ascii());
        }
        self
    }

    /// Waits until the program has ended; gives all that was shown.
    #[track_caller]
    pub(crate) fn all(&mut self) -> String {
        let captures = self.0.expect(expectrl::Eof).expect("the program ends");
        String::from_utf8_lossy(captures.before()).into_owned() + &String::from_utf8_lossy(&captures[0])
    }

    /// Waits until the program has ended.
    #[track_caller]
    pub(crate) fn shows_end(&mut self) {
        self.0.expect(expectrl::Eof).expect("the program ends");
    }
}
