//! An agent's transcript: how long it is, and the model that it names. It is only read.

use crate::model::turn::{Participant, model_name};
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
    // To open a FIFO would wait for whoever writes into it.
    let length = std::fs::metadata(transcript).ok().filter(std::fs::Metadata::is_file)?.len();
    let mut file = std::fs::File::open(transcript).ok()?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    last_model(&String::from_utf8_lossy(&tail))
}

/// The last model that some JSON names. What an agent puts in a model's place for lines of its own, as `<synthetic>`,
/// is none.
fn last_model(json: &str) -> Option<String> {
    let named = |rest: &str| {
        let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        model_name(value.split_once('"')?.0)
    };
    json.split("\"model\"").skip(1).filter_map(named).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_model_is_named_and_no_text_that_only_says_so() {
        for (json, model) in [
            (r#"{"model":"a"} {"model":"b"}"#, Some("b")),
            (r#"{"model": "a-1[1m]", "x": 1}"#, Some("a-1[1m]")),
            (r#"{"model":"a"} {"model":"<synthetic>"}"#, Some("a")),
            (r#"{"model":"a"} {"text":"\"model\":\"b\""}"#, Some("a")),
            (r#"{"model":"a"} {"model":null}"#, Some("a")),
            (r#"{"model":"a"} {"model":"b"#, Some("a")),
            (r#"{"models":"a"}"#, None),
            ("", None),
        ] {
            assert_eq!(last_model(json).as_deref(), model, "{json}");
        }
    }
}
