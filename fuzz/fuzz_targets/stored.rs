//! A timeline of which someone rewrote one record: log, status, show and undo's dry run read it
//! without a panic, and none of them changes a file.
#![no_main]

use gix::objs::tree::EntryKind;
use libfuzzer_sys::fuzz_target;
use oxundo::internals::{Checkpoints, Extent, Op, Repo, Side, View, ago, plan_undo, rules_of, status};
use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const RECORDS: [&str; 13] = [
    "state.json",
    "turns/00/00/01/turn.json",
    "turns/00/00/01/files",
    "turns/00/00/01/before/checkpoint.json",
    "turns/00/00/01/before/branches",
    "turns/00/00/01/before/stash",
    "turns/00/00/01/before/special",
    "turns/00/00/01/before/modes",
    "turns/00/00/01/before/directories",
    "turns/00/00/01/before/skipped",
    "turns/00/00/01/before/rules",
    "turns/00/00/01/before/uncaptured",
    "turns/00/00/01/after/skipped",
];

/// How many inputs one repository is used for: each leaves a few objects.
const USES: u32 = 2000;

struct Worked {
    directory: TempDir,
    timeline: gix::ObjectId,
    uses: u32,
}

impl Worked {
    fn new() -> Self {
        let directory = TempDir::new().expect("make a directory");
        let script = "git init -q -b main . && git config user.name n && git config user.email e && \
                      echo one >file && git add . && git commit -qm base && echo own >>file";
        run(Command::new("sh").args(["-ec", script]).current_dir(&directory));
        let arguments = [
            "oxundo",
            "-C",
            directory.path().to_str().expect("a name"),
            "run",
            "--",
            "sh",
            "-ec",
            "echo more >>file; mkdir -p new/deep; echo new >new/file; chmod 600 file; git stash -q; echo s >s",
        ];
        let _ = oxundo::run(arguments.map(Into::into));
        let gix = gix::open(directory.path()).expect("open the repository");
        let timeline = gix.find_reference("refs/oxundo/timeline").expect("there is a turn").id().detach();
        Self { directory, timeline, uses: 0 }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn run(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()));
}

thread_local! {
    static WORKED: RefCell<Option<Worked>> = const { RefCell::new(None) };
}

fuzz_target!(|input: (u8, &[u8])| {
    WORKED.with_borrow_mut(|worked| {
        if worked.as_ref().is_none_or(|worked| worked.uses >= USES) {
            *worked = Some(Worked::new());
        }
        let worked = worked.as_mut().expect("it was made");
        worked.uses += 1;
        rewrite(worked, RECORDS[usize::from(input.0) % RECORDS.len()], input.1);
    });
});

fn rewrite(worked: &Worked, record: &str, bytes: &[u8]) {
    let gix = gix::open(worked.path()).expect("open the repository");
    let blob = gix.write_blob(bytes).expect("write a blob").detach();
    let base = gix.find_commit(worked.timeline).expect("the timeline");
    let mut tree = gix.edit_tree(base.tree_id().expect("its tree")).expect("edit it");
    tree.upsert(record, EntryKind::Blob, blob).expect("put the record");
    let tree = tree.write().expect("write the tree");
    let me = gix::actor::SignatureRef { name: "n".into(), email: "e".into(), time: "0 +0000" };
    let parents: Vec<_> = base.parent_ids().map(|id| id.detach()).collect();
    let commit = gix.new_commit_as(me, me, "forged", tree, parents).expect("write the commit").id().detach();
    std::fs::write(worked.path().join(".git/refs/oxundo/timeline"), format!("{commit}\n")).expect("move the ref");

    let Ok(repo) = Repo::open(worked.path()) else { return };
    let Ok(view) = View::open(&repo, &|_| {}) else { return };
    let timeline = &view.timeline;
    let _ = (timeline.turn_files(1), timeline.turn_numbers(), status(&view));
    if let Ok(Some(turn)) = timeline.find_turn(1) {
        let _ = (turn.label(), ago(&turn.began_at));
        if let (Ok(before), Ok(after)) = (timeline.checkpoint(1, Side::Before), timeline.checkpoint(1, Side::After)) {
            let _ = (rules_of(&repo, &before), Checkpoints::new(&repo).delta(&turn, &before, &after));
        }
    }
    let _ = plan_undo(&view, Op::Undo, &Extent::Steps(1), None);
}
