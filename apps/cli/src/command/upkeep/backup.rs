//! `turnwire backup` and `turnwire restore`: a folder with a copy of the database, the other files of
//! the data folder, and a manifest with their digests.

mod manifest;

use std::fs::{self, File};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use turnwire_event::Clock as _;
use turnwire_log::private;
use turnwire_log::sqlite::{
    BackupPieces, CheckDepth, CheckedChains, DATABASE_FILE, DatabaseContent, SqliteStore,
};
use turnwire_session::SystemClock;

use crate::args::{BackupArgs, RestoreArgs};
use crate::command::settings;
use crate::terminal::output::print;
use manifest::{FileDigest, MANIFEST_FILE, Manifest, digest};

/// Events whose chains are checked without `--full`: some seconds.
const SAMPLE_EVENTS: u64 = 100_000;
/// The largest file that is copied beside the database: settings and lists of keys.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files of a data folder that are made by a start, or are of one run.
const OWN_FILES: [&str; 4] = ["reserve", "lock", "retention-confirm", MANIFEST_FILE];

fn depth(full: bool) -> CheckDepth {
    match full {
        true => CheckDepth::Full,
        false => CheckDepth::Sample {
            events: SAMPLE_EVENTS,
        },
    }
}

/// Writes a backup and prints its manifest.
pub(crate) fn backup(args: &BackupArgs) -> Result<()> {
    let home = settings::home(args.home.clone())?;
    let to = &args.to;
    ensure!(
        to.symlink_metadata().is_err(),
        "{} exists; a backup is a new folder",
        to.display()
    );
    let draft = DraftFolder::create(to).with_context(|| format!("creating {}", to.display()))?;
    let manifest = write(&home, &draft.path, depth(args.full))
        .with_context(|| format!("backing up {}", home.display()))?;
    draft
        .finish(to)
        .with_context(|| format!("renaming to {}", to.display()))?;
    print(&match args.json {
        true => format!("{:#}\n", json!(manifest)),
        false => format!(
            "{}: {} sessions, {} events, {} bytes; {} sessions with {} events match their hashes\n",
            to.display(),
            manifest.database.sessions,
            manifest.database.events,
            manifest.database.digest.bytes,
            manifest.checked.sessions,
            manifest.checked.events,
        ),
    });
    Ok(())
}

/// Fills the folder `to`.
fn write(home: &Path, to: &Path, depth: CheckDepth) -> Result<Manifest> {
    let database = to.join(DATABASE_FILE);
    let is_terminal = std::io::stderr().is_terminal();
    let mut shown = 0;
    let mut progress = |left: u64, all: u64| {
        let percent = 100 - (left * 100).checked_div(all).unwrap_or(0);
        if is_terminal && percent >= shown + 10 {
            shown = percent;
            eprintln!("turnwire: copied {percent} %");
        }
    };
    let time = SystemClock.now();
    let content = SqliteStore::back_up(home, &database, BackupPieces::default(), &mut progress)?;
    let (found, checked) = SqliteStore::check(to, depth).context("the copy was checked")?;
    ensure!(
        found == content,
        "the copy has other sessions than the database"
    );
    let files = copy_files(home, to)?;
    let manifest = Manifest::new(time, &content, digest(&database)?, files, depth, checked);
    let text = format!("{:#}\n", json!(manifest));
    let mut file = private::create_file(&to.join(MANIFEST_FILE))?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()?;
    File::open(to)?.sync_all()?;
    Ok(manifest)
}

/// Copies the regular files of the data folder that a start does not make by itself.
fn copy_files(home: &Path, to: &Path) -> Result<Vec<FileDigest>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_own = OWN_FILES.contains(&name)
            || name.starts_with(DATABASE_FILE)
            || name.starts_with("retention-confirm");
        if is_own || !entry.file_type()?.is_file() {
            continue;
        }
        let bytes = entry.metadata()?.len();
        if bytes > FILE_BYTES_MAX {
            eprintln!(
                "turnwire: {name} has {bytes} bytes and is not in the backup: copy it yourself"
            );
            continue;
        }
        let path = to.join(name);
        copy_file(&entry.path(), &path).with_context(|| format!("copying {name}"))?;
        files.push(FileDigest {
            name: name.to_owned(),
            digest: digest(&path)?,
        });
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// Copies a file into a private one and syncs it.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let mut source = private::open_to_read(from)?;
    let mut target = private::create_file(to)?;
    std::io::copy(&mut source, &mut target)?;
    Ok(target.sync_all()?)
}

/// A folder that is renamed when it is whole. Dropping it before removes it.
struct DraftFolder {
    path: PathBuf,
    is_done: bool,
}

impl DraftFolder {
    fn create(to: &Path) -> Result<Self> {
        let name = to.file_name().context("the path names no folder")?;
        let name = format!(".{}.{}.part", name.to_string_lossy(), std::process::id());
        let path = to.with_file_name(name);
        if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            private::create_folder(parent)?;
        }
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, private::FOLDER_MODE);
        builder.create(&path)?;
        Ok(Self {
            path,
            is_done: false,
        })
    }

    fn finish(mut self, to: &Path) -> Result<()> {
        // An empty folder of this name would be replaced; any other is an error.
        ensure!(to.symlink_metadata().is_err(), "the folder exists");
        fs::rename(&self.path, to)?;
        self.is_done = true;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        Ok(File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?)
    }
}

impl Drop for DraftFolder {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Checks a backup and puts it into a data folder.
pub(crate) fn restore(args: &RestoreArgs) -> Result<()> {
    let home = settings::home(args.home.clone())?;
    let (content, checked) = check(&args.from, depth(args.full)).with_context(|| {
        format!(
            "checking the backup {}; nothing was changed",
            args.from.display()
        )
    })?;
    let existing = home.join(DATABASE_FILE);
    ensure!(
        args.force || existing.symlink_metadata().is_err(),
        "{} exists; with --force it is kept aside and replaced",
        existing.display()
    );
    let now = SystemClock.now().to_string().replace(':', "-");
    let aside = home.join(format!("before-restore-{now}"));
    let from = args.from.join(DATABASE_FILE);
    let restored = SqliteStore::restore(&home, &from, &aside)
        .with_context(|| format!("restoring into {}", home.display()))?;
    let (copied, kept) = restore_files(&args.from, &home)?;
    let newest = content.newest_event.map(|time| time.to_string());
    print(&match args.json {
        true => {
            let report = json!({
                "home": home,
                "sessions": restored.sessions,
                "events": content.events,
                "newest_event": newest,
                "checked": {"sessions": checked.sessions, "events": checked.events},
                "epoch": restored.epoch.map(|epoch| epoch.0),
                "replaced": restored.replaced,
                "files_restored": copied,
                "files_kept": kept,
            });
            format!("{report:#}\n")
        }
        false => restored_text(&home, &restored, newest, (&copied, &kept)),
    });
    Ok(())
}

fn restored_text(
    home: &Path,
    restored: &turnwire_log::sqlite::RestoredDatabase,
    newest: Option<String>,
    (copied, kept): (&[String], &[String]),
) -> String {
    let newest = newest.unwrap_or_else(|| "no event".to_owned());
    let mut text = format!(
        "{}: {} sessions restored, the last event is of {newest}; every session begins a new epoch\n",
        home.display(),
        restored.sessions
    );
    if !copied.is_empty() {
        text.push_str(&format!("restored too: {}\n", copied.join(", ")));
    }
    if !kept.is_empty() {
        let kept = kept.join(", ");
        text.push_str(&format!(
            "kept as they are, not those of the backup: {kept}\n"
        ));
    }
    if let Some(aside) = &restored.replaced {
        let aside = aside.display();
        text.push_str(&format!(
            "the old database is in {aside}: remove it when you no longer need it\n"
        ));
    }
    text
}

/// Checks the files of a backup against its manifest, and its database.
fn check(from: &Path, depth: CheckDepth) -> Result<(DatabaseContent, CheckedChains)> {
    let manifest = Manifest::read(from)?;
    let files = manifest
        .files
        .iter()
        .map(|file| (file.name.as_str(), &file.digest));
    let database = [(DATABASE_FILE, &manifest.database.digest)];
    for (name, expected) in database.into_iter().chain(files) {
        ensure!(
            Path::new(name).file_name().is_some_and(|file| file == name),
            "the manifest names {name:?}, which is not a file of the backup"
        );
        let found = digest(&from.join(name)).with_context(|| format!("reading {name}"))?;
        if found != *expected {
            bail!("{name} is not the file that was backed up: its SHA-256 or size differs");
        }
    }
    let (content, checked) = SqliteStore::check(from, depth)?;
    let counts = (content.sessions, content.events);
    let expected = (manifest.database.sessions, manifest.database.events);
    ensure!(
        counts == expected,
        "the manifest counts {expected:?} sessions and events, the database has {counts:?}"
    );
    Ok((content, checked))
}

/// Copies the other files of a backup that the data folder does not have. Returns their names, and
/// the names of those that are there and differ.
fn restore_files(from: &Path, home: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let (mut copied, mut kept) = (Vec::new(), Vec::new());
    for file in Manifest::read(from)?.files {
        let path = home.join(&file.name);
        if path.symlink_metadata().is_err() {
            copy_file(&from.join(&file.name), &path)
                .with_context(|| format!("copying {}", file.name))?;
            copied.push(file.name);
        } else if digest(&path).ok().as_ref() != Some(&file.digest) {
            kept.push(file.name);
        }
    }
    File::open(home)?.sync_all()?;
    Ok((copied, kept))
}
