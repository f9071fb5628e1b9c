//! Runs a program under ptrace, counts the system calls by which it and whatever it starts change
//! something on disk, and kills at the one that is asked for, or lets it fail.
//!
//! ptrace sees every process and thread, and every way to the kernel: libc, raw system calls, git
//! and what git starts. Calls are counted in the order in which they come, over all of them. A filter of the kernel's stops
//! the program at these alone: to stop it at each of its calls took as long as all the rest.

use nix::errno::Errno;
use nix::libc::{self, c_long};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    /// oxundo and all that it has started.
    All,
    /// oxundo alone: what it has started lives on.
    Oxundo,
    /// The process that is about to make the call, be it a child of oxundo.
    Caller,
}

/// Where to kill: at the call of this number, before the kernel makes it or when it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) number: usize,
    pub(crate) done: bool,
    pub(crate) victim: Victim,
}

/// Which call fails, though the kernel would have made it, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) number: usize,
    pub(crate) errno: Errno,
    /// From then on all calls that need space fail: the disk stays full.
    pub(crate) lasting: bool,
}

/// A call that changes something.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// How many the program made before it, or, from [`OTHERS`] on, all that it has started: oxundo does not wait
    /// for a git that gets ready, and which of their calls comes first is not the same each time.
    pub(crate) number: usize,
    /// Whether the agent makes it, or what the agent has started.
    pub(crate) by_agent: bool,
    /// Who makes it, and what it is.
    pub(crate) text: String,
}

/// The first number of a call of what the program has started.
const OTHERS: usize = 1 << 20;

/// How a traced program went.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The calls that it made, as far as it came.
    pub(crate) points: Vec<Point>,
    /// Whether the point was reached.
    pub(crate) killed: bool,
    /// The exit code, if it ended by itself.
    pub(crate) code: Option<i32>,
    /// What it said on stderr.
    pub(crate) stderr: String,
}

/// What `sh` is to do so that the program's first call is seen: stop, have the kernel tell of the calls of [`CALLS`], and become
/// the program.
pub(crate) const LAUNCH: &str = r#"
    PERL_BADLANG=0 exec perl -e '
        my ($filter) = map { pack "H*", $_ } delete @ENV{qw(OXUNDO_CALLS PERL_BADLANG)};
        kill STOP => $$;
        my ($prctl, $no_new_privileges, $seccomp, $by_filter) = (157, 38, 22, 2);
        syscall $prctl, $no_new_privileges, 1, 0, 0, 0 if $>;
        my $program = pack "S x6 P", length($filter) / 8, $filter;
        syscall($prctl, $seccomp, $by_filter, $program) == 0 or die "no filter: $!";
        exec {$ARGV[0]} @ARGV;
    ' "$0" "$@""#;

/// In what a program is told which of its calls are traced.
const CALLS: &str = "OXUNDO_CALLS";

#[derive(Debug, Default)]
struct Process {
    parent: i32,
    agent: bool,
    name: String,
}

struct Tracer<'a> {
    root: i32,
    started: bool,
    /// By thread, the process.
    threads: BTreeMap<i32, i32>,
    processes: BTreeMap<i32, Process>,
    points: Vec<Point>,
    /// The numbers of the next calls of the program, and of what it has started.
    next: [usize; 2],
    kill: Option<Kill>,
    failure: Option<Failure>,
    failed: bool,
    /// The threads that are in a call that shall have failed.
    failing: BTreeSet<i32>,
    /// What to do meanwhile, just before the first call that is this one.
    meanwhile: Option<(Instant<'a>, &'a dyn Fn())>,
    /// What to do before each of the program's own calls.
    each: Option<&'a dyn Fn(&str)>,
    /// Who is told of flushes.
    flushed: Option<&'a dyn Fn(&str)>,
    /// The thread that is in the call after which to kill.
    leaving: Option<i32>,
    killed: bool,
    dead: BTreeSet<i32>,
}

/// Runs the command, which is `sh -c LAUNCH PROGRAM ARGS…`, to its end or to the point. Fails where
/// the system does not allow a program to be traced.
pub(crate) fn trace(command: &mut Command, at: Option<Kill>) -> Result<Trace, Errno> {
    run(command, Meddling { kill: at, ..Meddling::default() })
}

/// As [`trace`], but to its end, with a call that fails.
pub(crate) fn fail(command: &mut Command, failure: Failure) -> Result<Trace, Errno> {
    run(command, Meddling { failure: Some(failure), ..Meddling::default() })
}

/// As [`trace`], but does something just before the first call that has these words.
pub(crate) fn interrupt(command: &mut Command, call: &str, meanwhile: &dyn Fn()) -> Result<Trace, Errno> {
    run(command, Meddling { meanwhile: Some((Instant::Words(call), meanwhile)), ..Meddling::default() })
}

/// As [`trace`], but does something just before the call of this number.
pub(crate) fn interrupt_at(command: &mut Command, number: usize, meanwhile: &dyn Fn()) -> Result<Trace, Errno> {
    run(command, Meddling { meanwhile: Some((Instant::Number(number), meanwhile)), ..Meddling::default() })
}

/// As [`trace`], but is asked, before each of the program's own calls that changes something or opens what came out of the
/// worktree, by its words, to do something.
pub(crate) fn interrupt_each(command: &mut Command, kill: Option<Kill>, act: &dyn Fn(&str)) -> Result<Trace, Errno> {
    run(command, Meddling { each: Some(act), kill, ..Meddling::default() })
}

/// As [`trace`], but does something just before the program opens a path with this end once more, if only to read it, or
/// makes it as another name of a file, when it has done so this often.
pub(crate) fn interrupt_at_opening(
    command: &mut Command,
    path: &str,
    often: usize,
    meanwhile: &dyn Fn(),
) -> Result<Trace, Errno> {
    run(command, Meddling { meanwhile: Some((Instant::Opens(path, often), meanwhile)), ..Meddling::default() })
}

/// As [`trace`], but tells of each call, of whichever process, that flushes a file or a whole file system.
pub(crate) fn trace_flushes(command: &mut Command, kill: Option<Kill>, flushed: &dyn Fn(&str)) -> Result<Trace, Errno> {
    run(command, Meddling { flushed: Some(flushed), kill, ..Meddling::default() })
}

/// A call before which something happens.
#[derive(Clone, Copy)]
enum Instant<'a> {
    /// The first one with these words.
    Words(&'a str),
    /// The one of this number.
    Number(usize),
    /// The program's that opens a path with this end, after so many others.
    Opens(&'a str, usize),
}

/// What is done to a program on its way.
#[derive(Clone, Copy, Default)]
struct Meddling<'a> {
    kill: Option<Kill>,
    failure: Option<Failure>,
    meanwhile: Option<(Instant<'a>, &'a dyn Fn())>,
    each: Option<&'a dyn Fn(&str)>,
    flushed: Option<&'a dyn Fn(&str)>,
}

#[expect(clippy::zombie_processes, reason = "the tracer waits for all that there is")]
fn run(command: &mut Command, meddling: Meddling<'_>) -> Result<Trace, Errno> {
    let Meddling { kill: at, failure, meanwhile, each, flushed } = meddling;
    let opens = each.is_some() || matches!(meanwhile, Some((Instant::Opens(..), _)));
    command.env(CALLS, filter(opens)).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start a program");
    let root = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    waitpid(root, Some(WaitPidFlag::WUNTRACED))?;
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_EXITKILL;
    if let Err(error) = ptrace::seize(root, options) {
        kill(root, Signal::SIGKILL)?;
        child.wait().expect("it is gone");
        return Err(error);
    }
    kill(root, Signal::SIGCONT)?;
    let mut tracer = Tracer {
        root: root.as_raw(),
        started: false,
        threads: BTreeMap::new(),
        processes: BTreeMap::new(),
        points: Vec::new(),
        next: [0, OTHERS],
        kill: at,
        failure,
        failed: false,
        failing: BTreeSet::new(),
        meanwhile,
        each,
        flushed,
        leaving: None,
        killed: false,
        dead: BTreeSet::new(),
    };
    let code = tracer.run()?;
    let mut stderr = Vec::new();
    child.stderr.take().expect("stderr is a pipe").read_to_end(&mut stderr).expect("read stderr");
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Ok(Trace { points: tracer.points, killed: tracer.killed, code, stderr })
}

impl Tracer<'_> {
    fn run(&mut self) -> Result<Option<i32>, Errno> {
        let mut code = None;
        loop {
            // Only what this thread has started: others of this process trace and wait too.
            let status = match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
                Err(Errno::ECHILD) => return Ok(code),
                Err(Errno::EINTR) => continue,
                status => status?,
            };
            let signal = match status {
                WaitStatus::Exited(pid, status) => {
                    if pid.as_raw() == self.root {
                        code = Some(status);
                    }
                    continue;
                }
                WaitStatus::Stopped(_, signal) => Some(signal),
                WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_EXEC) => {
                    self.executed(pid.as_raw());
                    None
                }
                WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_SECCOMP) => {
                    self.at_call(pid);
                    None
                }
                WaitStatus::PtraceSyscall(pid) => {
                    self.after_call(pid);
                    None
                }
                WaitStatus::PtraceEvent(..) => None,
                _ => continue,
            };
            let Some(pid) = status.pid() else { continue };
            let process = self.process_of(pid.as_raw());
            if self.dead.contains(&process) || (self.killed && self.kills_all()) {
                self.end(process);
                continue;
            }
            let is_awaited = self.leaving == Some(pid.as_raw()) || self.failing.contains(&pid.as_raw());
            match if is_awaited { ptrace::syscall(pid, signal) } else { ptrace::cont(pid, signal) } {
                // It was killed meanwhile.
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn kills_all(&self) -> bool {
        self.kill.is_some_and(|kill| kill.victim == Victim::All)
    }

    /// The process that a thread belongs to; noted with its parent when it is met first.
    fn process_of(&mut self, thread: i32) -> i32 {
        if let Some(process) = self.threads.get(&thread) {
            return *process;
        }
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let field = |name: &str| -> Option<i32> {
            status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
        };
        let process = field("Tgid:").unwrap_or(thread);
        let parent = field("PPid:").unwrap_or_default();
        self.threads.insert(thread, process);
        let agent = self.processes.get(&parent).is_some_and(|parent| parent.agent);
        let name = self.processes.get(&parent).map(|parent| parent.name.clone()).unwrap_or_default();
        self.processes.entry(process).or_insert(Process { parent, agent, name });
        process
    }

    fn executed(&mut self, thread: i32) {
        let process = self.process_of(thread);
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let program = words[0].rsplit('/').next().unwrap_or_default().to_owned();
        let known = self.processes.get_mut(&process).expect("it was met");
        // oxundo starts git, and the agent.
        known.agent |= process != self.root && known.parent == self.root && program != "git";
        let first = words[1..].iter().find(|word| !word.starts_with('-') && !word.contains('='));
        known.name = match first {
            Some(word) if program == "git" => format!("git {word}"),
            _ => program,
        };
        self.started |= process == self.root;
    }

    /// A thread has made a call whose end is awaited.
    fn after_call(&mut self, pid: Pid) {
        let thread = pid.as_raw();
        let process = self.process_of(thread);
        if self.leaving == Some(thread) {
            self.kill_now(process);
        } else if self.failing.remove(&thread) {
            self.fail_now(pid);
        }
    }

    fn at_call(&mut self, pid: Pid) {
        let thread = pid.as_raw();
        let process = self.process_of(thread);
        if !self.started || self.killed {
            return;
        }
        let Some(call) = Call::read(pid) else { return };
        let opens = |at: &mut Instant<'_>| match at {
            Instant::Opens(end, often) if call.opens().is_some_and(|path| path.ends_with(*end)) => {
                let left = often.checked_sub(1);
                *often = left.unwrap_or_default();
                left.is_none()
            }
            _ => false,
        };
        if process == self.root
            && let Some((_, act)) = self.meanwhile.take_if(|(at, _)| opens(at))
        {
            act();
        }
        let text = call.changes();
        if process == self.root
            && let Some(act) = self.each
        {
            let out = || call.opens().filter(|path| path.contains("/oxundo/out/") || path.contains("-out-"));
            text.clone().or_else(|| out().map(|path| format!("open {path}"))).iter().for_each(|text| act(text));
        }
        let Some(text) = text else { return };
        let by = &self.processes[&process];
        let by_agent = by.agent;
        let next = &mut self.next[usize::from(process != self.root)];
        let number = *next;
        *next += 1;
        let is_now = |at: &Instant<'_>| match at {
            Instant::Words(words) => text.contains(words),
            Instant::Number(at) => *at == number,
            Instant::Opens(..) => false,
        };
        if let Some((_, act)) = self.meanwhile.take_if(|(at, _)| is_now(at)) {
            act();
        }
        self.points.push(Point { number, by_agent, text: format!("{}: {text}", by.name) });
        let is_killed = self.kill.is_some_and(|kill| kill.number == number && !kill.done);
        if let Some(flushed) = self.flushed.filter(|_| call.flushes() && !is_killed) {
            flushed(&text);
        }
        let fails = self
            .failure
            .is_some_and(|failure| failure.number == number || (failure.lasting && self.failed && call.needs_space()));
        self.failed |= fails;
        if fails && !by_agent {
            // A call of no number: the kernel does nothing.
            let _ = call.renumbered(u64::MAX);
            self.failing.insert(thread);
        }
        match self.kill {
            Some(kill) if kill.number == number => {
                if kill.done {
                    self.leaving = Some(thread);
                } else {
                    self.kill_now(process);
                }
            }
            _ => {}
        }
    }

    fn fail_now(&self, pid: Pid) {
        let (Some(failure), Ok(mut regs)) = (self.failure, ptrace::getregs(pid)) else { return };
        regs.rax = (-i64::from(failure.errno as i32)).cast_unsigned();
        // It was killed meanwhile.
        let _ = ptrace::setregs(pid, regs);
    }

    fn kill_now(&mut self, caller: i32) {
        self.killed = true;
        let all: Vec<i32> = match self.kill.map(|kill| kill.victim) {
            Some(Victim::All) => self.processes.keys().copied().collect(),
            Some(Victim::Oxundo) => vec![self.root],
            _ => vec![caller],
        };
        for process in all {
            self.end(process);
        }
    }

    fn end(&mut self, process: i32) {
        self.dead.insert(process);
        // It may be gone already.
        let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
    }
}

/// The filter that stops a program at the calls that may change something, and where it is asked for, at all that open a file.
fn filter(opens: bool) -> String {
    const ALWAYS: [c_long; 37] = [
        libc::SYS_creat,
        libc::SYS_write,
        libc::SYS_pwrite64,
        libc::SYS_writev,
        libc::SYS_pwritev,
        libc::SYS_pwritev2,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_fchmod,
        libc::SYS_fchown,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_syncfs,
        libc::SYS_sendfile,
        libc::SYS_copy_file_range,
        libc::SYS_rename,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        libc::SYS_link,
        libc::SYS_linkat,
        libc::SYS_symlink,
        libc::SYS_symlinkat,
        libc::SYS_unlink,
        libc::SYS_unlinkat,
        libc::SYS_mkdir,
        libc::SYS_mkdirat,
        libc::SYS_rmdir,
        libc::SYS_truncate,
        libc::SYS_chmod,
        libc::SYS_fchmodat,
        libc::SYS_utimensat,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
        libc::SYS_mknod,
        libc::SYS_mknodat,
        libc::SYS_execve,
    ];
    let with = |arg: u8, mask: u64, value: u64| {
        let is = SeccompCondition::new(arg, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value);
        SeccompRule::new(vec![is.expect("a condition")]).expect("a rule")
    };
    // To write, to make, to empty.
    let to_write =
        |arg: u8| if opens { vec![] } else { [0o1, 0o2, 0o100, 0o1000].map(|bit| with(arg, bit, bit)).into() };
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = ALWAYS.into_iter().map(|call| (call, vec![])).collect();
    rules.insert(libc::SYS_open, to_write(1));
    rules.insert(libc::SYS_openat, to_write(2));
    rules.insert(libc::SYS_mmap, vec![with(3, 0xf, 1)]);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), TargetArch::x86_64);
    let program: BpfProgram = filter.expect("a filter").try_into().expect("the kernel takes it");
    let bytes = program.iter().flat_map(|step| {
        let [code, k] = [u64::from(step.code), u64::from(step.k)];
        (code | u64::from(step.jt) << 16 | u64::from(step.jf) << 24 | k << 32).to_le_bytes()
    });
    bytes.fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// A call as its registers tell it.
struct Call {
    pid: Pid,
    number: c_long,
    args: [u64; 5],
}

impl Call {
    fn read(pid: Pid) -> Option<Self> {
        let regs = ptrace::getregs(pid).ok()?;
        let number = c_long::try_from(regs.orig_rax).ok()?;
        Some(Self { pid, number, args: [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8] })
    }

    /// Makes it another call.
    fn renumbered(&self, number: u64) -> Result<(), Errno> {
        let mut regs = ptrace::getregs(self.pid)?;
        regs.orig_rax = number;
        ptrace::setregs(self.pid, regs)
    }

    /// Whether a full disk would refuse it.
    fn needs_space(&self) -> bool {
        let creates = |flags: u64| flags & 0o100 != 0;
        match self.number {
            libc::SYS_open => creates(self.args[1]),
            libc::SYS_openat => creates(self.args[2]),
            number => [
                libc::SYS_creat,
                libc::SYS_write,
                libc::SYS_pwrite64,
                libc::SYS_writev,
                libc::SYS_pwritev,
                libc::SYS_pwritev2,
                libc::SYS_fallocate,
                libc::SYS_sendfile,
                libc::SYS_copy_file_range,
                libc::SYS_link,
                libc::SYS_linkat,
                libc::SYS_symlink,
                libc::SYS_symlinkat,
                libc::SYS_mkdir,
                libc::SYS_mkdirat,
            ]
            .contains(&number),
        }
    }

    fn flushes(&self) -> bool {
        [libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_syncfs].contains(&self.number)
    }

    /// What this call changes on disk; `None` for one that changes nothing there.
    fn changes(&self) -> Option<String> {
        let [a, b, c, d, _] = self.args;
        match self.number {
            libc::SYS_open => self.opened("open", a, b),
            libc::SYS_openat => self.opened("openat", b, c),
            libc::SYS_creat => self.opened("creat", a, 0o1),
            libc::SYS_write => self.written("write", a),
            libc::SYS_pwrite64 => self.written("pwrite", a),
            libc::SYS_writev => self.written("writev", a),
            libc::SYS_pwritev | libc::SYS_pwritev2 => self.written("pwritev", a),
            libc::SYS_ftruncate => self.written("ftruncate", a),
            libc::SYS_fallocate => self.written("fallocate", a),
            libc::SYS_fchmod => self.written("fchmod", a),
            libc::SYS_fchown => self.written("fchown", a),
            // Not a change, but the instant before it is the one at which most can be lost.
            libc::SYS_fsync => self.written("fsync", a),
            libc::SYS_fdatasync => self.written("fdatasync", a),
            libc::SYS_syncfs => self.written("syncfs", a),
            libc::SYS_sendfile => self.written("sendfile", a),
            libc::SYS_copy_file_range => self.written("copy_file_range", c),
            libc::SYS_rename => Some(self.named("rename", &[a, b])),
            libc::SYS_renameat | libc::SYS_renameat2 => Some(self.named("renameat", &[b, d])),
            libc::SYS_link => Some(self.named("link", &[a, b])),
            libc::SYS_linkat => Some(self.named("linkat", &[b, d])),
            libc::SYS_symlink => Some(self.named("symlink", &[a, b])),
            libc::SYS_symlinkat => Some(self.named("symlinkat", &[a, c])),
            libc::SYS_unlink => Some(self.named("unlink", &[a])),
            libc::SYS_unlinkat => Some(self.named("unlinkat", &[b])),
            libc::SYS_mkdir => Some(self.named("mkdir", &[a])),
            libc::SYS_mkdirat => Some(self.named("mkdirat", &[b])),
            libc::SYS_rmdir => Some(self.named("rmdir", &[a])),
            libc::SYS_truncate => Some(self.named("truncate", &[a])),
            libc::SYS_chmod => Some(self.named("chmod", &[a])),
            libc::SYS_fchmodat => Some(self.named("fchmodat", &[b])),
            libc::SYS_utimensat => Some(self.named("utimensat", &[b])),
            libc::SYS_utime | libc::SYS_utimes => Some(self.named("utimes", &[a])),
            libc::SYS_futimesat => Some(self.named("futimesat", &[b])),
            libc::SYS_mknod => Some(self.named("mknod", &[a])),
            libc::SYS_mknodat => Some(self.named("mknodat", &[b])),
            // Not a change, but between two programs.
            libc::SYS_execve => std::path::Path::new(&self.string(a)).exists().then(|| self.named("execve", &[a])),
            // A shared, writable mapping of a file is written to without another call.
            libc::SYS_mmap => {
                let shared = d & 0xf == 1 && c & 0x2 != 0;
                shared.then(|| self.written("mmap", self.args[4])).flatten()
            }
            _ => None,
        }
    }

    /// The path that this call opens, to read or to write, or makes as another name of a file.
    fn opens(&self) -> Option<String> {
        match self.number {
            libc::SYS_open => Some(self.string(self.args[0])),
            libc::SYS_openat | libc::SYS_link => Some(self.string(self.args[1])),
            libc::SYS_linkat => Some(self.string(self.args[3])),
            _ => None,
        }
    }

    fn opened(&self, name: &str, path: u64, flags: u64) -> Option<String> {
        let writes = flags & 0o3 != 0 || flags & 0o1100 != 0;
        if !writes {
            return None;
        }
        let path = self.string(path);
        is_on_disk(&path).then(|| format!("{name} {path}"))
    }

    fn written(&self, name: &str, file: u64) -> Option<String> {
        let file = i32::try_from(file).ok().filter(|file| *file >= 0)?;
        let path = std::fs::read_link(format!("/proc/{}/fd/{file}", self.pid)).ok()?;
        let path = path.to_string_lossy();
        is_on_disk(&path).then(|| format!("{name} {path}"))
    }

    fn named(&self, name: &str, paths: &[u64]) -> String {
        let paths: Vec<_> = paths.iter().map(|path| self.string(*path)).collect();
        format!("{name} {}", paths.join(" "))
    }

    /// The string at an address of the process.
    fn string(&self, address: u64) -> String {
        let mut bytes = vec![0; 4096];
        let memory = std::fs::File::open(format!("/proc/{}/mem", self.pid));
        // Up to the end of the page, behind which there may be nothing.
        let most = 4096 - usize::try_from(address % 4096).expect("less than a page");
        let read = |at: u64, into: &mut [u8]| memory.as_ref().map_or(0, |file| file.read_at(into, at).unwrap_or(0));
        let mut length = read(address, &mut bytes[..most]);
        if !bytes[..length].contains(&0) && length == most {
            length += read(address + most as u64, &mut bytes[most..]);
        }
        let end = bytes[..length].iter().position(|byte| *byte == 0).unwrap_or(length);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// Neither a pipe nor a terminal nor nothing.
fn is_on_disk(path: &str) -> bool {
    !path.contains(":[") && !path.starts_with("/proc/") && (!path.starts_with("/dev/") || path.starts_with("/dev/shm/"))
}
