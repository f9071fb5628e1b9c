//! An agent's transcript: how long it is, and the model that it names. It is only read.

use crate::model::turn::Participant;
use std::io::{Read, Seek, SeekFrom};

/// How much of a transcript's end is searched for the model's name.
const TAIL: u64 = 256 << 10;

/// Ends a session's part in a turn: records the transcript's length and the model that it names.
pub fn finish(part: &mut Participant) {
    if !part.at_work {
        return;
    }
    part.at_work = false;
    let Some(transcript) = part.transcript.as_deref() else { return };
    part.to = Some(length(transcript));
    part.model = part.model.take().or_else(|| model_in(transcript));
}

/// How long a file is.
pub fn length(file: &str) -> u64 {
    std::fs::metadata(file).map_or(0, |about| about.len())
}

/// The last model that a transcript names.
fn model_in(transcript: &str) -> Option<String> {
    let mut file = std::fs::File::open(transcript).ok().filter(|file| file.metadata().is_ok_and(|a| a.is_file()))?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let (_, rest) = text.rsplit_once("\"model\":\"")?;
    let (model, _) = rest.split_once('"')?;
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    (!model.is_empty() && model.len() <= 100 && model.chars().all(plain)).then(|| model.to_owned())
}
