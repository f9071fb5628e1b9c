//! Undo and redo for any coding agent.
