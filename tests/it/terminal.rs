//! A terminal for programs to run in, and someone who types on it. When it is dropped, it is closed.

use expectrl::session::OsSession;
use expectrl::{Captures, Error, Expect, Needle, Regex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::num::NonZeroU16;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// So long something is waited for that comes at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until this is shown, without a core for the waiting: the program is to have it.
fn expect<N: Needle>(session: &mut OsSession, needle: impl Fn() -> N) -> Result<Captures, Error> {
    let start = Instant::now();
    loop {
        let found = session.check(needle())?;
        if found.matches().next().is_some() {
            return Ok(found);
        }
        let left = PATIENCE.checked_sub(start.elapsed()).ok_or(Error::ExpectTimeout)?;
        let left = Timespec::try_from(left).expect("it is a time");
        let mut shown = [PollFd::new(session.get_stream(), PollFlags::IN)];
        // Whatever ends the waiting, it is looked again.
        let _ = poll(&mut shown, Some(&left));
    }
}

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
        if let Err(error) = expect(&mut self.0, || text) {
            let mut shown = [0; 4096];
            let n = self.0.try_read(&mut shown).unwrap_or_default();
            panic!("the terminal shows {text:?}: {error}; it shows: {}", shown[..n].escape_ascii());
        }
        self
    }

    /// Waits until the program has ended; gives all that was shown.
    #[track_caller]
    pub(crate) fn all(&mut self) -> String {
        let captures = expect(&mut self.0, || expectrl::Eof).expect("the program ends");
        String::from_utf8_lossy(captures.before()).into_owned() + &String::from_utf8_lossy(&captures[0])
    }

    /// Waits until the program has ended.
    #[track_caller]
    pub(crate) fn shows_end(&mut self) {
        expect(&mut self.0, || expectrl::Eof).expect("the program ends");
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
        // A screen that goes on telling something is not waited for any longer.
        let start = Instant::now();
        while !is_so(self.parser.screen()) {
            assert!(start.elapsed() < PATIENCE, "until {what}; the screen shows\n{}", self.screen().contents());
            match expect(&mut self.session, || ANYTHING) {
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
    #[track_caller]
    pub(crate) fn ends(&mut self) -> &mut Self {
        loop {
            match expect(&mut self.session, || ANYTHING) {
                Ok(read) => self.parser.process(read.get(0).unwrap_or_default()),
                Err(Error::ExpectTimeout) => panic!("it ends; the screen shows\n{}", self.screen().contents()),
                Err(_) => return self,
            }
        }
    }
}
