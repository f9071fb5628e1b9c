//! The table of the `oxundo.*` keys: the code and the documentation take the defaults from it.

/// One key of git's configuration.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "internals"), expect(dead_code, reason = "docs and manual are held to it by tests"))]
pub struct Key {
    /// Its name, without `oxundo.`.
    pub name: &'static str,
    /// Its default.
    pub default: &'static str,
    /// What it may be.
    pub values: &'static str,
    /// What it does, in whole sentences.
    pub about: &'static str,
    /// A value that somebody might set.
    pub example: &'static str,
    /// Whether each value is a list of words that adds to the default.
    pub list: bool,
}

const ONE: Key = Key { name: "", default: "", values: "", about: "", example: "", list: false };
const LIST: Key = Key { values: "words", list: true, ..ONE };

/// The names by which scanners for secrets look: of settings with passwords in them, of keys, of what tools keep to log in.
const SECRET: &str = concat!(
    ".env .env.* .env~ *.env .envrc secret.* secrets.{yml,yaml,json,toml,ini,env,properties,xml,txt} .secret .secrets ",
    "*.pem *.key *.keypair *.p8 *.p12 *.pfx *.pkcs12 *.ppk *.jks *.keystore *.keytab *.keychain *.keychain-db *.agilekeychain ",
    "*.kdb *.kdbx *.psafe3 *.bek *.fve *.{pem,key,p12,pfx}{~,.bak,.old,.orig} ",
    "id_* *_rsa *_dsa *_ecdsa *_ed25519 **/.ssh/* otr.private_key master.key secret_token.rb ",
    "credentials* *[-_]credentials.json .git-credentials .netrc _netrc .authinfo .npmrc .pypirc .pgpass pgpass.conf .my.cnf ",
    ".mylogin.cnf .htpasswd proftpdpasswd .dockercfg **/.docker/config.json auth.json **/.kube/config kubeconfig *.kubeconfig ",
    "**/.aws/config .boto .s3cfg **/.oci/config accesstokens.json *.publishsettings *.cscfg rclone.conf .smbcredentials ",
    "*.tfstate *.tfstate.* *.tfvars *.tfvars.json .terraformrc terraform.rc .vault-token .vault_pass* ",
    "*service-account*.json *service_account*.json serviceaccount*.json client_secret*.json *firebase-adminsdk*.json token.json ",
    ".ftpconfig .remote-sync.json sftp.json sftp-config.json filezilla.xml recentservers.xml sitemanager.xml *.ovpn ",
    ".msmtprc .esmtprc .fetchmailrc .muttrc .renviron wp-config.php localsettings.php **/.purple/accounts.xml ",
    ".dbeaver-data-sources.xml robomongo.json .{bash,zsh,sh,mysql,psql,sqlite,python,irb,node_repl,rediscli}_history ",
    "!*.pub !*.example !*.sample !*.template !*.tmpl !*.dist !*[-._]{example,sample,template}.* !{example,sample,template}.*",
);

/// Every key, by subject.
pub const KEYS: &[Key] = &[
    Key {
        name: "enabled",
        default: "true",
        values: "a boolean",
        about: "Whether turns are recorded, here or wherever the configuration holds. Where they are not, agents' hooks do nothing, run only runs its command, and what is recorded can be undone and redone as ever.",
        example: "false",
        ..ONE
    },
    Key {
        name: "mode",
        default: "commit",
        values: "commit or ghost",
        about: "How turns are kept: as commits on your branch, or as checkpoints alone. Outside a git repository it is always ghost.",
        example: "ghost",
        ..ONE
    },
    Key {
        name: "untracked",
        default: "leave",
        values: "leave or commit",
        about: "What becomes of your untracked files when a turn begins: they stay untracked, or they go into the dirty commit.",
        example: "commit",
        ..ONE
    },
    Key {
        name: "dirty",
        default: "undo",
        values: "undo or keep",
        about: "Whether undo takes the dirty commit back as well, so that your changes are uncommitted again, or leaves HEAD on it.",
        example: "keep",
        ..ONE
    },
    Key {
        name: "edits",
        default: "merge",
        values: "merge, refuse or overwrite",
        about: "What undo and redo do with your own edits to what the turns changed. Edits that are overwritten are in the rescue checkpoint. The option --edits stands over it.",
        example: "refuse",
        ..ONE
    },
    Key {
        name: "trailer",
        default: "Assisted-by",
        values: "a trailer's name, or nothing",
        about: "The trailer before the agent's name, and its model's where that is known, at the end of the auto-commit's message. Empty for no trailer.",
        example: "Co-developed-by",
        ..ONE
    },
    Key {
        name: "messageCommand",
        values: "a shell command",
        about: "It reads the diff on standard input and prints the auto-commit's message. Without it, or when it fails, the message is that of -m, the prompt's first line, or the agent and the turn.",
        example: "my-message-writer --short",
        ..ONE
    },
    Key {
        name: "secret",
        default: SECRET,
        about: "Globs of names that are never committed for the agent, in whatever case; ! before one makes an exception. Such a file stays untracked, is named, and is undone like all others.",
        example: "*.secret.json",
        ..LIST
    },
    Key {
        name: "secretText",
        default: "A[KS]IA???????????????? gh[a-z]_????????????????* github_pat_????????????????* gl{pat,ptt,dt,rt,cbt,soat,ft,agent}-????????????????* xox[a-z]-??????????* xapp-??????????* sk-????????????????*[0-9]* sk-{ant,proj,or,svcacct,admin}-????????????????* [prs]k_{live,test}_????????????????* AIza????????????????????????????????* ya29.????????????????* eyJ????????*.*.* npm_????????????????* pypi-????????????????* hf_????????????????* gsk_????????????????* xai-????????????????* dop_v1_????????????????* dckr_pat_????????????????* shp[a-z]*_????????????????* hv[bs].????????????????* SG.????????????????* glsa_????????????????* whsec_????????????????* sbp_????????????????* rubygems_????????????????* AGE-SECRET-KEY-1????????????????* NRAK-????????????????* PMAK-????????????????* lin_api_????????????????* sq0[a-z][a-z][a-z]-????????????????* dt0c01.????????????????* [ps]k.eyJ????????????????*",
        about: "Globs of words, of letters, digits and _ . -, that are taken out of the prompt's first line before it becomes a commit's subject. Passwords that are given as such, keys, and long words of letters and digits in no order are taken out too. The whole prompt stays in the turn's record.",
        example: "ACME-*",
        ..LIST
    },
    Key {
        name: "verify",
        default: "false",
        values: "a boolean",
        about: "Whether the repository's commit hooks run for the auto-commit. A hook that fails is reported, and the turn is recorded all the same.",
        example: "true",
        ..ONE
    },
    Key {
        name: "sign",
        default: "auto",
        values: "auto, always or never",
        about: "Whether commits are signed; auto does as commit.gpgSign says.",
        example: "never",
        ..ONE
    },
    Key {
        name: "signTimeout",
        default: "60",
        values: "seconds",
        about: "For how long a signature is waited for.",
        example: "10",
        ..ONE
    },
    Key {
        name: "lockTimeout",
        default: "1500",
        values: "milliseconds",
        about: "For how long a lock on git's index is waited for, before the refusal 'locked'.",
        example: "5000",
        ..ONE
    },
    Key {
        name: "fsync",
        default: "true",
        values: "a boolean",
        about: "Whether commands wait until what they rely on is on the disk, so that a power cut takes nothing: the records, the objects that these name, and the files that undo and redo write.",
        example: "false",
        ..ONE
    },
    Key {
        name: "hookTimeout",
        default: "25000",
        values: "milliseconds",
        about: "For how long an agent's hook works before it gives up. The next command tells of it.",
        example: "60000",
        ..ONE
    },
    Key {
        name: "othersBranches",
        default: "entire/** gitbutler/**",
        about: "Branches that other tools own. Undo leaves them where they are, whatever moved them during a turn, and on one of them turns make no commits.",
        example: "mytool/**",
        ..LIST
    },
    Key {
        name: "steps",
        default: "hooks",
        values: "hooks, watch or off",
        about: "Whether the steps of a turn are kept: what changed around each call of a tool that an agent's hooks tell of. With watch, run watches the worktree as well, as with its option --steps.",
        example: "off",
        ..ONE
    },
    Key {
        name: "maxFileSize",
        default: "10m",
        values: "bytes; k, m and g are understood",
        about: "Untracked files that are larger are not captured. They are named once and never deleted.",
        example: "50m",
        ..ONE
    },
    Key {
        name: "maxDirEntries",
        default: "200",
        values: "a number",
        about: "Untracked directories that had more files when the turn began are not captured. Outside a git repository the default is 10000.",
        example: "1000",
        ..ONE
    },
    Key {
        name: "maxCapture",
        default: "512m",
        values: "bytes; k, m and g are understood",
        about: "So many bytes of untracked files that git does not have yet are captured at once. Where there are more, the largest directories are left out, and named. Outside a git repository the default is 2g.",
        example: "2g",
        ..ONE
    },
    Key {
        name: "maxCaptureFiles",
        default: "50000",
        values: "a number",
        about: "So many untracked files that git does not have yet are captured at once. Where there are more, the largest directories are left out, and named. Outside a git repository the default is 200000.",
        example: "200000",
        ..ONE
    },
    Key {
        name: "skipDir",
        default: "node_modules .venv venv env dist build target __pycache__ .cache .tox .gradle .mypy_cache .pytest_cache",
        about: "Untracked directories of these names are not captured: tools can make their content again.",
        example: "vendor .terraform",
        ..LIST
    },
    Key {
        name: "exclude",
        about: "Globs of untracked files that are not captured.",
        example: "*.log coverage/**",
        ..LIST
    },
    Key {
        name: "include",
        about: "Globs of ignored files that are captured all the same. A pattern with a slash reaches into ignored directories.",
        example: ".env secrets/*.key",
        ..LIST
    },
    Key {
        name: "keep",
        default: "30d",
        values: "an age, now or never",
        about: "How long turns are kept. The newest 50 of a branch always are.",
        example: "2 weeks",
        ..ONE
    },
    Key {
        name: "maxSize",
        default: "never",
        values: "bytes; k, m and g are understood; or never",
        about: "Where all that oxundo keeps takes more, the oldest turns go before their time. The newest 50 of a branch stay all the same.",
        example: "2g",
        ..ONE
    },
    Key {
        name: "beforeUndo",
        values: "a shell command",
        about: "It is given what undo would do as JSON on standard input, before anything is touched, and refuses it by an exit code other than 0, with what it prints on standard error.",
        example: "! pgrep -x devserver",
        ..ONE
    },
    Key {
        name: "beforeRedo",
        values: "a shell command",
        about: "The same for redo.",
        example: "! pgrep -x devserver",
        ..ONE
    },
    Key {
        name: "beforeTimeout",
        default: "60",
        values: "seconds",
        about: "For so long such a command is waited for: after that it is ended, and the undo or redo refused.",
        example: "300",
        ..ONE
    },
    Key {
        name: "onUndo",
        values: "a shell command",
        about: "It is given what undo did as JSON on standard input: for a database, an index, a running server. What it prints is shown.",
        example: "make reindex",
        ..ONE
    },
    Key { name: "onRedo", values: "a shell command", about: "The same for redo.", example: "make reindex", ..ONE },
    Key {
        name: "mcp",
        default: "read",
        values: "`read`, `full` or `off`",
        about: "What agents may do by way of `oxundo mcp`: look, name states and plan; carry their plans out, too; or nothing.",
        example: "full",
        ..ONE
    },
    Key {
        name: "conversation",
        default: "hint",
        values: "`hint` or `fork`",
        about: "What undo does about the agent's conversation: it says how that is taken up again, or makes a copy that ends before the undone prompt, where the agent keeps it in a file. The option --conversation stands over it.",
        example: "fork",
        ..ONE
    },
    Key {
        name: "hints",
        default: "true",
        values: "a boolean",
        about: "Whether hints are printed.",
        example: "false",
        ..ONE
    },
];

/// The default of a key.
///
/// # Panics
///
/// For a key that is not in the table.
pub fn default(name: &str) -> &'static str {
    KEYS.iter().find(|key| key.name == name).expect("every key is in the table").default
}

/// The variable that overrides a key: `OXUNDO_MAX_FILE_SIZE` for `maxFileSize`.
pub fn variable(name: &str) -> String {
    let mut variable = String::from("OXUNDO_");
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            variable.push('_');
        }
        variable.push(c.to_ascii_uppercase());
    }
    variable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_names_in_the_environment() {
        assert_eq!(variable("mode"), "OXUNDO_MODE");
        assert_eq!(variable("maxFileSize"), "OXUNDO_MAX_FILE_SIZE");
    }

    #[test]
    fn every_key_is_in_the_table_once_and_whole() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(!KEYS[..at].iter().any(|other| other.name == key.name), "{} is there once", key.name);
            assert!(key.about.ends_with('.') && !key.values.is_empty(), "{} is described", key.name);
            assert!(!key.example.is_empty() && key.example != key.default, "{} has an example of its own", key.name);
        }
    }
}
