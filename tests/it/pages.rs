//! The pages for people: what they point to is there.

use std::path::{Path, PathBuf};

fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = |directory: PathBuf| std::fs::read_dir(directory).expect("list pages").flatten();
    let all = listed(top.to_owned()).chain(listed(top.join("docs"))).map(|entry| entry.path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).collect::<String>().replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("read a page");
        for rest in text.split("](").skip(1) {
            let (target, _) = rest.split_once(')').expect("a link ends");
            if target.contains("://") {
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let there = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {target}: {error}", page.display()));
            let there = String::from_utf8_lossy(&there);
            let found =
                heading.is_empty() || there.lines().any(|line| line.starts_with('#') && anchor(line) == heading);
            assert!(found, "{}: '{target}' is a heading", page.display());
        }
    }
    assert!(links > 20, "links are found: {links}");
}
