//! Finding and opening the repository that a directory is in, or oxundo's own for it.

use crate::error::{Code, Refusal};
use crate::git::repo::apart::Look;
use crate::git::repo::discover::{check_trust, discover};
use crate::git::repo::environment::{check_named, named_git_dir, named_worktree};
use crate::git::repo::lock::PATIENCE;
use crate::git::repo::process::{absolute, git_version};
use crate::git::repo::refs::FORMAT;
use crate::git::repo::scratch::check_no_links;
use crate::git::repo::settings::{boolean_of, config_parameters};
use crate::git::repo::shadow::{ShadowRepository, broken_repository, is_shadow_directory, root, why_no_project};
use crate::git::repo::{Power, Repo, Top};
use crate::model::bytes::shell_word;
use crate::progress::ProgressSink;
use anyhow::Result;
use gix::bstr::BString;
use gix::sec::Trust;
use std::cell::{Cell, OnceCell, RefCell};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

impl Repo {
    /// Finds and opens the repository that `directory` is in, or the one that `GIT_DIR` names
    /// when `directory` is in its worktree, or oxundo's own store for the directory.
    pub fn open(directory: &Path) -> Result<Self> {
        Self::open_existing(directory)?.ok_or_else(|| {
            let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
            if let Some(refusal) = broken_repository(&directory) {
                return refusal.into();
            }
            let message = format!("'{}' is in no git repository, and no turn is recorded for it", directory.display());
            let here = match why_no_project(&directory) {
                None => "run 'oxundo run -- COMMAND' to record a turn, or give another directory with -C",
                Some(_) => "go to a project's own directory, or give it with -C",
            };
            Refusal::new(Code::NotFound, message)
                .hint(here)
                .hint("run 'oxundo gc --stores' to see the directories that have turns")
                .into()
        })
    }

    /// Opens it again, with the settings of now, for whoever keeps it for long.
    pub fn reopen(&mut self) -> Result<()> {
        // A plan that was looked at names what was made for it.
        self.keep()?;
        self.flush()?;
        let now = Self::open(self.top())?;
        let (prefix, index) = (std::mem::take(&mut self.prefix), self.index.take());
        *self = Self { prefix, index: index.into(), watch: self.watch.clone(), patience: self.patience, ..now };
        Ok(())
    }

    /// As [`Repo::open`]; nothing where there is none.
    pub fn open_existing(directory: &Path) -> Result<Option<Self>> {
        let directory = absolute(directory)?;
        if let Some(repo) = Self::open_from_environment(&directory)? {
            check_named(&directory, repo.top(), &repo.git_dir, &repo.common_dir)?;
            return Ok(Some(repo));
        }
        let Some((found, trust)) = discover(&directory) else {
            let store = ShadowRepository::find(&directory)?;
            return store.map(|store| Self::open_store(&store, &directory)).transpose();
        };
        check_trust(&directory, &found, trust)?;
        let (path, top) = found.into_repository_and_work_tree_directories();
        let mut gix = open_gix(&path, Some(Trust::Full))?;
        let is_apart = gix.workdir().is_none() && gix.config_snapshot().boolean("core.bare") != Some(true);
        if std::env::var_os("GIT_WORK_TREE").is_some() || is_apart && top.is_some() {
            // Where that is another one, it is refused below; or `--separate-git-dir` has put the git directory elsewhere.
            gix.set_workdir(top.clone())?;
        }
        let repo = Self::new(gix, &directory, false)?;
        check_named(&directory, repo.top(), &repo.git_dir, &repo.common_dir)?;
        // `core.worktree` may lead elsewhere.
        let found_from_top = top.is_some_and(|top| top.canonicalize().is_ok_and(|top| top == repo.top()));
        Ok(Some(Self { found_from_top, ..repo }))
    }

    fn open_store(store: &ShadowRepository, directory: &Path) -> Result<Self> {
        let mut gix = open_gix(&store.git_dir, None)?;
        gix.set_workdir(store.directory.clone())?;
        Self::new(gix, &absolute(directory)?, false)
    }

    fn open_from_environment(directory: &Path) -> Result<Option<Self>> {
        let Some(git_dir) = named_git_dir(directory)? else { return Ok(None) };
        let mut gix = open_gix(&git_dir, None)?;
        gix.set_workdir(named_worktree(&gix, directory)?)?;
        Self::new(gix, directory, true).map(Some)
    }

    fn new(mut gix: gix::Repository, directory: &Path, from_environment: bool) -> Result<Self> {
        check_format(&gix)?;
        let Some(top) = gix.workdir() else {
            return Err(Refusal::new(Code::NotFound, "this repository is bare: it has no worktree")
                .hint("run 'git worktree add ../worktree' and 'cd ../worktree', then the same command again")
                .into());
        };
        let top = absolute(top)?;
        let git_dirs = [absolute(gix.git_dir())?, absolute(gix.common_dir())?];
        if git_dirs.iter().any(|git_dir| directory.starts_with(git_dir) && !top.starts_with(git_dir)) {
            return Err(Refusal::new(Code::NotFound, format!("'{}' is in a git directory", directory.display()))
                .hint(format!("run 'cd {}', then the same command again", shell_word(top.as_os_str().as_bytes())))
                .into());
        }
        let [git_dir, common_dir] = git_dirs;
        check_no_links(&git_dir.join("oxundo"))?;
        if common_dir != git_dir {
            check_no_links(&common_dir.join("oxundo"))?;
            if let Some(id) = git_dir.file_name() {
                check_no_links(&common_dir.join("oxundo/worktrees").join(id))?;
            }
        }
        let prefix = directory.strip_prefix(&top).map(Path::to_owned).unwrap_or_default();
        gix.object_cache_size_if_unset(4 * 1024 * 1024);
        gix.objects.enable_object_memory();
        Ok(Self {
            top: Top::open(&top, gix.filesystem_options()?.ignore_case)?,
            scratch: git_dir.join("oxundo"),
            git_dir,
            common_dir,
            prefix,
            gix,
            from_environment,
            found_from_top: false,
            index: RefCell::default(),
            ahead: RefCell::default(),
            watch: ProgressSink::default(),
            stop: OnceCell::default(),
            attributes: OnceCell::default(),
            patience: PATIENCE,
            sharing: OnceCell::new(),
            audience: RefCell::default(),
            unwritten: Cell::default(),
            look: Some(Look::default()).into(),
            power: Power::default(),
            ways: RefCell::default(),
            levels: RefCell::default(),
            told: RefCell::default(),
            rolled_back: Cell::default(),
        })
    }

    /// Whether the repository was found by `GIT_DIR` only.
    pub fn only_by_environment(&self) -> bool {
        self.from_environment && !self.is_shadow() && discover(self.top()).is_none()
    }

    /// Whether this is oxundo's own store for a directory without a repository.
    pub fn is_shadow(&self) -> bool {
        is_shadow_directory(&self.git_dir)
    }

    /// Why a repository's top holds more than one project, where it does.
    pub fn why_no_project(&self) -> Option<&'static str> {
        if self.is_shadow() { None } else { why_no_project(self.top()) }
    }

    /// The file of the user's own ignore rules for this repository.
    pub fn exclude_file(&self) -> PathBuf {
        self.common_dir.join("info/exclude")
    }

    /// Finds the repository as [`Repo::open`] does; where there is none, makes a store of
    /// oxundo's own for the directory.
    pub fn open_or_make(directory: &Path) -> Result<Self> {
        match Self::open_existing(directory)? {
            Some(repo) => Ok(repo),
            None => Self::open_store(&ShadowRepository::make(&absolute(directory)?)?, directory),
        }
    }

    /// Makes a repository in an empty directory, for what needs git's own settings of the user alone.
    pub fn make_empty(directory: &Path) -> Result<Self> {
        gix::init(directory)?;
        Self::open(directory)
    }

    /// The shadow repository that was in use here before this repository was made.
    pub fn earlier_shadow(&self) -> Option<ShadowRepository> {
        if self.is_shadow() {
            return None;
        }
        let root = root()?;
        // Without a slash behind, which an empty prefix would leave.
        let here: PathBuf = self.top().join(self.prefix()).components().collect();
        let below_top = here.ancestors().take_while(|directory| directory.starts_with(self.top()));
        below_top.into_iter().find_map(|directory| ShadowRepository::of(&root, directory))
    }
}

/// Opens a git directory. Without the word of git's that it is to be trusted, it has to be the user's.
fn open_gix(path: &Path, trust: Option<Trust>) -> Result<gix::Repository> {
    let mut permissions = gix::open::Permissions::default();
    permissions.config.git_binary = has_config_of_its_own();
    // A hook may run with an object directory of its own.
    permissions.env.objects = gix::sec::Permission::Deny;
    let mut options = gix::open::Options::default().permissions(permissions).bail_if_untrusted(true);
    if let Some(trust) = trust {
        options = options.with(trust);
    }
    if let Ok(parameters) = std::env::var("GIT_CONFIG_PARAMETERS") {
        options = options.cli_overrides(config_parameters(&parameters));
    }
    let mut gix = gix::open_opts(path, options).map_err(|error| not_opened(path, &error.to_string()))?;
    // What `git replace` has in an object's place is a way to look at it. What is brought back is what was there, and
    // a push has sent the commits as they were made, with the parents that they have.
    gix.objects.ignore_replacements = true;
    // It is for what is sent to others, and git itself heeds it nowhere else.
    gix.clear_namespace();
    Ok(gix)
}

/// Whether git may have a system-wide configuration that is not /etc/gitconfig: then gix has to ask git where it is,
/// which takes longer than all the rest of opening a repository.
fn has_config_of_its_own() -> bool {
    let prefixes = git_prefixes();
    let known = prefixes.iter().all(|prefix| prefix == Path::new("/usr") || !prefix.join("etc/gitconfig").exists());
    !cfg!(target_os = "linux") || prefixes.is_empty() || !known
}

/// Whether git may have attributes for all of the machine in another place than /etc, where gix looks for them.
fn has_attributes_of_its_own() -> bool {
    let prefixes = git_prefixes();
    prefixes.is_empty() || prefixes.iter().any(|prefix| prefix.join("etc/gitattributes").exists())
}

impl Repo {
    /// Whether git takes attributes from nowhere else than gix does. Looked for once: git is searched on PATH for it.
    pub fn knows_attributes(&self) -> bool {
        *self.attributes.get_or_init(|| self.finds_all_attributes())
    }

    fn finds_all_attributes(&self) -> bool {
        let is_off = |set: String| boolean_of(&set) == Some(true);
        // From the top of the worktree, for git, if it is relative.
        let is_found = |file: &BString| file.starts_with(b"/") || file.starts_with(b"~");
        std::env::var_os("GIT_ATTR_SOURCE").is_none()
            && self.given("attr.tree").is_none()
            && self.setting("core.attributesFile").as_ref().is_none_or(is_found)
            && (std::env::var("GIT_ATTR_NOSYSTEM").is_ok_and(is_off) || !has_attributes_of_its_own())
    }
}

/// Where git is installed, as far as that can be seen: its system-wide files are in /etc where that is /usr, and else in
/// the `etc` beside its `bin`.
fn git_prefixes() -> Vec<PathBuf> {
    let Ok(git) = which::which("git") else { return Vec::new() };
    let beside = |git: &Path| Some(git.parent()?.parent()?.to_owned());
    [beside(&git), git.canonicalize().ok().and_then(|git| beside(&git))].into_iter().flatten().collect()
}

fn not_opened(path: &Path, error: &str) -> anyhow::Error {
    let refusal = Refusal::new(Code::Io, format!("the repository at '{}' cannot be opened: {error}", path.display()));
    if error.contains("unsafe") {
        let directory = path.parent().filter(|_| path.ends_with(".git")).unwrap_or(path).display();
        let hint = format!("if you trust it, run 'git config --global --add safe.directory {directory}'");
        return refusal.hint(hint).into();
    }
    refusal.hint("run 'git status' to see what git says of it").into()
}

/// The oldest git whose tables of refs oxundo can move.
const TABLES: (u32, u32) = (2, 46);

/// Refuses a repository whose refs nobody here can read, before anything is recorded.
fn check_format(gix: &gix::Repository) -> Result<()> {
    let format = gix.config_snapshot().string(FORMAT).map(|value| value.to_string());
    let unknown = |format: &str| {
        let what = format!("this repository keeps its refs in the '{format}' format, which oxundo cannot read");
        Refusal::new(Code::NotFound, what).hint("run 'git refs migrate --ref-format=files' to convert it")
    };
    match format.as_deref() {
        None | Some("files") => Ok(()),
        Some("reftable") => {
            let version = git_version().unwrap_or_default();
            let mut numbers = version.split(['.', ' ']).map_while(|part| part.parse::<u32>().ok());
            if numbers.next().zip(numbers.next()).is_some_and(|version| version >= TABLES) {
                return Ok(());
            }
            let what = format!(
                "this repository keeps its refs in the reftable format, for which oxundo needs git {}.{}; this is git {version}",
                TABLES.0, TABLES.1
            );
            Err(Refusal::new(Code::NotFound, what).hint("install a newer git, or give its directory in PATH").into())
        }
        Some(other) => Err(unknown(other).into()),
    }
}
