//! Whether all that git could find is there to be read. A disk that is not mounted yet, or a pack that only another user may
//! read, is no loss, and nothing must be mended for its sake.

use crate::error::{Code, Refusal};
use crate::git::durable::Durable;
use crate::git::durable::gather::objects_directory;
use anyhow::Result;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

impl Durable<'_> {
    /// Refuses where something cannot be read in which git looks for objects.
    pub(super) fn check_reach(&self) -> Result<()> {
        let others = self.repo.gix.objects.store_ref().alternate_db_paths()?;
        for objects in [objects_directory(self.repo)].iter().chain(&others) {
            std::fs::read_dir(objects).map_err(|error| out_of_reach(objects, &error))?;
            for directory in (0..=u8::MAX).map(|first| objects.join(format!("{first:02x}"))) {
                if let Err(error) = if_there(std::fs::read_dir(&directory)) {
                    return Err(out_of_reach(&directory, &error).into());
                }
            }
            check_packs(&objects.join("pack"))?;
        }
        Ok(())
    }
}

fn check_packs(directory: &Path) -> Result<(), Refusal> {
    let listed = if_there(std::fs::read_dir(directory)).map_err(|error| out_of_reach(directory, &error))?;
    for entry in listed.into_iter().flatten().flatten() {
        let path = entry.path();
        if ["pack", "idx"].map(OsStr::new).map(Some).contains(&path.extension()) {
            // git may just have removed it.
            if_there(File::open(&path)).map_err(|error| out_of_reach(&path, &error))?;
        }
    }
    Ok(())
}

fn if_there<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn out_of_reach(path: &Path, error: &io::Error) -> Refusal {
    let what = format!("cannot look for what a power cut may have left: '{}' cannot be read: {error}", path.display());
    Refusal::new(Code::Io, what)
        .hint("mount the disk that it is on, or make it readable for you, then run the same command again")
}
