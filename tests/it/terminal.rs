//! A terminal for programs to run in, and someone who types on it. When it is dropped, it is closed.

use expectrl::session::OsSession;
use expectrl::{Expect, Regex};
use std::num::NonZeroU16;
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

/// A terminal whose screen is read as people see it, through a terminal's own parser.
pub(crate) struct Watched {
    session: OsSession,
    parser: vt100::Parser,
}

/// Whatever there is to be read.
const ANYTHING: Regex<&str> = Regex("(?s-u:.+)");

fn size(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a screen has a size")
}

impl Watched {
    /// Starts a program in a terminal of this size.
    pub(crate) fn start(mut command: Command, width: u16, height: u16) -> Self {
        command.env("TERM", "xterm-256color").stdin(Stdio::inherit());
        let mut session = OsSession::spawn(command).expect("start a program in a terminal");
        session.get_process_mut().set_window_size(width, height).expect("set the terminal's size");
        session.set_expect_timeout(Some(Duration::from_secs(60)));
        Self { session, parser: vt100::Parser::new(size(height), size(width), 0) }
    }

    pub(crate) fn types(&mut self, text: &str) -> &mut Self {
        self.session.send(text).expect("type");
        self
    }

    /// The terminal gets another size.
    pub(crate) fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.session.get_process_mut().set_window_size(width, height).expect("set the terminal's size");
        self.parser.set_size(size(height), size(width));
        self
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// The process that was started.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.session.get_process().pid().as_raw()).expect("it has a number")
    }

    /// Waits until the screen is like that.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) -> &mut Self {
        while !is_so(self.parser.screen()) {
            match self.session.expect(ANYTHING) {
                Ok(read) => self.parser.process(read.get(0).unwrap_or_default()),
                Err(error) => panic!("until {what}: {error}; the screen shows\n{}", self.screen().contents()),
            }
        }
        self
    }

    /// Waits until this is somewhere on the screen.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) -> &mut Self {
        self.until(text, |screen| screen.contents().contains(text))
    }

    /// Waits until all that has the terminal has ended.
    pub(crate) fn ends(&mut self) -> &mut Self {
        while let Ok(read) = self.session.expect(ANYTHING) {
            self.parser.process(read.get(0).unwrap_or_default());
        }
        self
    }
}
