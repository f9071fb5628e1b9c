//! Processes that are agents': what fires hooks, and what an agent types itself. A test is the user; were hooks fired by
//! the test's own process, each command of the user's would descend from the agent.

use crate::copies;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::spawn;

/// What an agent was told to run: how it ended, and what it said.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// A process that runs what it is told and lives as long as the tests: a shell by a name that is none.
struct Agent {
    _process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Each line is a directory with the script `run`; the answer is its exit code.
const LOOP: &str = "while read -r d; do sh \"$d/run\" <\"$d/in\" >\"$d/out\" 2>\"$d/err\"; echo $?; done";

impl Agent {
    fn start() -> Self {
        let directory = copies::directory();
        let shell = which::which("sh").expect("there is a shell");
        let program = directory.path().join("agent");
        symlink(shell, &program).expect("name a shell");
        let mut command = Command::new(&program);
        command.args(["-c", LOOP]).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = started(command);
        let orders = process.stdin.take().expect("stdin is a pipe");
        let answers = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        Self { _process: process, orders, answers }
    }

    fn run(&mut self, script: &[u8], input: &[u8]) -> Ran {
        let directory = copies::directory();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("run"), script).expect("write the script");
        fs::write(place("in"), input).expect("write the input");
        writeln!(self.orders, "{}", directory.path().display()).expect("the agent is there");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the agent answers");
        let read = |name: &str| fs::read(place(name)).expect("read what it said");
        let code = answer.trim().parse().expect("an exit code");
        Ran { code, stdout: read("out"), stderr: read("err") }
    }
}

/// A process, and where it goes.
type Order = (Command, Sender<Child>);

/// Starts what lives as long as the tests in a thread that does so too: who traces waits for all that its own thread has started.
static STARTER: LazyLock<Mutex<Sender<Order>>> = LazyLock::new(|| {
    let (order, orders) = channel::<Order>();
    spawn(move || {
        for (mut command, started) in orders {
            started.send(command.spawn().expect("start an agent")).expect("somebody waits for it");
        }
    });
    Mutex::new(order)
});

fn started(command: Command) -> Child {
    let (tell, told) = channel();
    STARTER.lock().unwrap_or_else(PoisonError::into_inner).send((command, tell)).expect("somebody starts it");
    told.recv().expect("it is started")
}

/// The agent that a thread has: a test has one, which lives on after it.
struct Lent(Option<Agent>);

static IDLE: Mutex<Vec<Agent>> = Mutex::new(Vec::new());

thread_local! {
    static LENT: RefCell<Lent> = RefCell::new(Lent(idle().pop()));
}

fn idle() -> MutexGuard<'static, Vec<Agent>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Lent {
    fn drop(&mut self) {
        idle().extend(self.0.take());
    }
}

/// Has the thread's agent run this command, with these bytes to read.
pub(crate) fn run(command: &Command, input: &[u8]) -> Ran {
    LENT.with_borrow_mut(|lent| lent.0.get_or_insert_with(Agent::start).run(&script(command), input))
}

/// The script that becomes this command. The shell in between counts for nothing: the agent is what is above it.
fn script(command: &Command) -> Vec<u8> {
    let mut script = b"cd ".to_vec();
    script.extend(quoted(command.get_current_dir().unwrap_or(Path::new(".")).as_os_str()));
    script.extend(b" && exec env -i");
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            script.push(b' ');
            script.extend(quoted(&[name, value].join(OsStr::new("="))));
        }
    }
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        script.push(b' ');
        script.extend(quoted(word));
    }
    script
}

fn quoted(word: &OsStr) -> Vec<u8> {
    let inner = word.as_bytes().split(|byte| *byte == b'\'').collect::<Vec<_>>().join(&b"'\\''"[..]);
    [b"'", &inner[..], b"'"].concat()
}
