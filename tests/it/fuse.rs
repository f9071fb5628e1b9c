//! Repositories on file systems that this machine has not got: a small FUSE program shows a directory as one.

use crate::sandbox::Sandbox;
use std::fs;
use std::io::Write as _;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the FUSE program may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A sandbox whose repository lies on a file system of its own.
pub(crate) struct Mounted {
    // Unmounted first, whatever happens: then the sandbox can go.
    _mount: Mount,
    sandbox: Sandbox,
}

impl Deref for Mounted {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Mounted {
    /// A repository on `main` with `README.txt` in one commit, "base", on a file system with these switches of
    /// `tests/fuse/passthrough.py`. `None`, and said aloud, where none can be mounted; with `OXUNDO_REQUIRE_FUSE`
    /// that is a failure.
    pub(crate) fn new(switches: &[&str]) -> Option<Self> {
        let sandbox = Sandbox::without_repository();
        let (kept, shown) = (sandbox.base().join("kept"), sandbox.root());
        fs::rename(shown, &kept).and_then(|()| fs::create_dir(shown)).expect("put one directory below another");
        let mount = match Mount::new(&kept, shown, switches) {
            Ok(mount) => mount,
            Err(error) => {
                let skipped = format!("SKIPPED, NOTHING IS PROVED: no file system can be mounted here ({error})");
                assert!(std::env::var_os("OXUNDO_REQUIRE_FUSE").is_none(), "{skipped}");
                let _ = writeln!(std::io::stderr(), "{skipped}");
                return None;
            }
        };
        sandbox.git(["init", "-q", "-b", "main", "--template="]);
        sandbox.identify();
        sandbox.sh("git add -A && git commit -qm base");
        Some(Self { _mount: mount, sandbox })
    }
}

/// A mounted file system. It goes when this is dropped, and also when the tests are killed: the program that serves
/// it unmounts it when its stdin ends.
struct Mount(Child);

impl Mount {
    fn new(kept: &Path, shown: &Path, switches: &[&str]) -> Result<Self, String> {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuse/passthrough.py");
        // Debian's own: packages are installed for no other.
        let mut command = Command::new("/usr/bin/python3");
        command.arg(program).args([kept, shown]).args(switches).stdin(Stdio::piped()).stderr(Stdio::piped());
        // No child of this thread: the tracer waits for all that there are.
        let spawned = std::thread::spawn(move || command.spawn()).join().expect("join a thread that only spawns");
        let mut mount = Self(spawned.map_err(|error| format!("/usr/bin/python3: {error}"))?);
        let device = |path: &Path| fs::metadata(path).map(|about| about.dev()).ok();
        let begun = Instant::now();
        while device(shown) == device(kept) {
            if mount.0.try_wait().is_ok_and(|ended| ended.is_some()) || begun.elapsed() > PATIENCE {
                return Err(mount.last_words());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(mount)
    }

    /// The last line that the program wrote.
    fn last_words(&mut self) -> String {
        let _ = self.0.kill();
        let stderr = self.0.stderr.take().and_then(|stderr| std::io::read_to_string(stderr).ok()).unwrap_or_default();
        stderr.trim_end().lines().last().unwrap_or("it does not begin").to_owned()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let begun = Instant::now();
        while self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            if begun.elapsed() > PATIENCE {
                // Someone has a file of it open still.
                let _ = self.0.kill();
                let _ = self.0.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
