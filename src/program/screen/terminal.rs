//! The terminal, taken for a whole screen and given back as it was: at the end, at a panic, at a signal, and for as long as
//! a pager or the shell has it.

use crate::program::screen::picture::Picture;
use crate::program::ui::Ui;
use anyhow::{Result, ensure};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, kill_current_process_group};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;
use std::io::Stderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a screen has the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether a thread has panicked: the terminal is given back, and nothing is to be drawn on it any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// A terminal that a screen has.
pub struct Taken {
    pub picture: Picture<Stderr>,
    /// Whether nothing has been drawn on it yet, or others have had it since.
    pub is_new: bool,
    signals: Signals,
}

/// What signals came.
struct Signals {
    ends: Vec<(i32, Arc<AtomicBool>)>,
    suspends: Arc<AtomicBool>,
    goes_on: Arc<AtomicBool>,
    /// Whether it stops as every program does.
    stops: Arc<AtomicBool>,
}

impl Signals {
    fn watch() -> Result<Self> {
        let stops = Arc::new(AtomicBool::new(false));
        flag::register_conditional_default(SIGTSTP, Arc::clone(&stops))?;
        let mut ends = Vec::new();
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
            ends.push((signal, watched(signal)?));
        }
        Ok(Self { ends, suspends: watched(SIGTSTP)?, goes_on: watched(SIGCONT)?, stops })
    }
}

fn watched(signal: i32) -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    flag::register(signal, Arc::clone(&flag))?;
    Ok(flag)
}

impl Taken {
    /// Takes the terminal.
    pub fn take() -> Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            BROKEN.store(true, Ordering::Relaxed);
            give_back();
            before(panic);
        }));
        let signals = Signals::watch()?;
        std::thread::Builder::new().name("terminal".to_owned()).spawn(end_with_terminal)?;
        take()?;
        Ok(Self { picture: Picture::blank(Ui::screen()), is_new: true, signals })
    }

    /// Lets others have it for a while.
    pub fn lend(&mut self, to: impl FnOnce() -> Result<()>) -> Result<()> {
        give_back();
        // The terminal's key stops all that have it: who waits for them, too.
        self.signals.stops.store(true, Ordering::Relaxed);
        let lent = to();
        self.signals.stops.store(false, Ordering::Relaxed);
        // What interrupted or stopped them was not meant for the screen.
        let interrupts = self.signals.ends.iter().filter(|(signal, _)| *signal == SIGINT).map(|(_, came)| came);
        for came in interrupts.chain([&self.signals.suspends]) {
            came.store(false, Ordering::Relaxed);
        }
        take()?;
        self.picture = Picture::blank(Ui::screen());
        self.is_new = true;
        lent
    }

    /// Stops until the shell has it go on, with all that was started with it, as the terminal's own key does.
    pub fn suspend(&mut self) -> Result<()> {
        self.lend(|| Ok(kill_current_process_group(Signal::TSTP)?))?;
        self.signals.goes_on.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Heeds the signals that came; gives the one that ends the screen.
    pub fn heed(&mut self) -> Result<Option<i32>> {
        ensure!(!BROKEN.load(Ordering::Relaxed), "a thread of the screen has panicked");
        if let Some((signal, _)) = self.signals.ends.iter().find(|(_, came)| came.load(Ordering::Relaxed)) {
            return Ok(Some(*signal));
        }
        if self.signals.suspends.swap(false, Ordering::Relaxed) {
            self.suspend()?;
        }
        if self.signals.goes_on.swap(false, Ordering::Relaxed) {
            // It was stopped by what nobody hears of: the shell has set the terminal up for itself.
            self.lend(|| Ok(()))?;
        }
        Ok(None)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
        self.signals.stops.store(true, Ordering::Relaxed);
    }
}

/// Waits until the terminal is gone, and ends the process if a screen has it then: crossterm would read the end of its file for
/// ever, and hear of no signal.
fn end_with_terminal() {
    // Asked for nothing, the system tells of this alone.
    let stdin = std::io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
    while !matches!(poll(&mut terminal, None), Ok(1..)) {}
    while !TAKEN.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = end_by(SIGHUP);
}

/// Whether the terminal is gone.
pub fn is_gone() -> bool {
    let stdin = std::io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
    matches!(poll(&mut terminal, Some(&Timespec::default())), Ok(1..))
}

/// Ends the process as the signal that ended the screen does.
pub fn end_by(signal: i32) -> Result<()> {
    Ok(emulate_default_handler(signal)?)
}

fn take() -> Result<()> {
    TAKEN.store(true, Ordering::Relaxed);
    begin().inspect_err(|_| give_back())
}

fn begin() -> Result<()> {
    enable_raw_mode()?;
    // What is wider than it is taken for, at the end of a line, is not to go on in the next one.
    execute!(Ui::screen(), EnterAlternateScreen, Clear(ClearType::All), DisableLineWrap)?;
    execute!(Ui::screen(), EnableMouseCapture, EnableBracketedPaste)?;
    Ok(())
}

fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        // With the terminal gone there is nothing left to give back.
        let _ = execute!(Ui::screen(), DisableBracketedPaste, DisableMouseCapture, EnableLineWrap);
        let _ = execute!(Ui::screen(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
