//! What a command line asks for, as it can be planned at any time.

use crate::ops::request::Request;
use crate::ops::undo::range::Extent;
use crate::program::args::{Branches, Distance, RestoreArgs, UndoArgs};

/// Of `undo`.
pub fn undo_request(args: &UndoArgs) -> Request {
    let paths = (!args.pathspecs.is_empty()).then_some(&args.pathspecs[..]);
    let request = Request {
        only: args.only.clone(),
        session: args.session.clone(),
        revert: args.revert,
        conversation: args.conversation,
        ..distant(Request::default(), &args.distance)
    };
    request.paths(paths)
}

/// Of `restore`.
pub fn restore_request(args: &RestoreArgs) -> Request {
    let paths = (!args.pathspecs.is_empty()).then_some(&args.pathspecs[..]);
    Request { exact: args.exact, ..Request::restore(&args.state) }.paths(paths)
}

/// As far as was said.
pub fn distant(request: Request, distance: &Distance) -> Request {
    let request = Request { all_branches: distance.branches == Some(Branches::All), ..request };
    request.over(&extent(distance)).edits(distance.edits)
}

/// How far to go.
pub fn extent(distance: &Distance) -> Extent {
    match &distance.to {
        Some(turn) => Extent::To(turn.clone()),
        None => Extent::Steps(distance.steps().unwrap_or(1)),
    }
}
