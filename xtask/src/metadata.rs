//! The dependency graph as cargo tells it, with only what the checks look at.
//!
//! Only the packages of this platform are asked for: those are the ones a build has downloaded,
//! so a fresh machine can answer without the network.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// All packages, and which of them are ours.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Every package of the graph.
    pub packages: Vec<Package>,
    /// The ids of our own.
    pub workspace_members: Vec<String>,
    /// Who asks for whom, with which features; none if cargo was not asked.
    #[serde(default)]
    pub resolve: Option<Resolve>,
}

/// The graph.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// Every package with what it asks for.
    pub nodes: Vec<Node>,
}

/// One package in the graph.
#[derive(Debug, Deserialize)]
pub struct Node {
    pub id: String,
    /// The features that are on.
    pub features: Vec<String>,
    /// The ids of what it may ask for.
    pub dependencies: Vec<String>,
}

/// One package.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its id in the graph.
    pub id: String,
    pub name: String,
    pub version: String,
    /// Its licence, as an SPDX expression.
    pub license: Option<String>,
    /// What it asks for.
    pub dependencies: Vec<Dependency>,
}

/// One thing a package asks for.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The name of the package asked for.
    pub name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
    /// Whether a feature must ask for it.
    #[serde(default)]
    pub optional: bool,
}

impl Metadata {
    /// Asks cargo; without the network if the packages are here already.
    pub fn read(root: &Path) -> Result<Self> {
        let version = output(Command::new("rustc").arg("-vV"))?;
        let host = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("rustc -vV names no host")?;
        let ask = |network: &[&str]| {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut command = Command::new(cargo);
            command
                .args(["metadata", "--format-version", "1"])
                .args(["--filter-platform", host])
                .args(network)
                .current_dir(root);
            output(&mut command)
        };
        Self::parse(&ask(&["--offline"]).or_else(|_| ask(&[]))?)
    }

    /// Reads what `cargo metadata` printed.
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).context("cargo metadata printed something unexpected")
    }

    /// Whether a build has it: whether our packages lead to it over what is asked for. The graph
    /// also holds what a feature that is off would ask for.
    pub fn is_built(&self, package: &Package) -> bool {
        let Some(resolve) = &self.resolve else {
            return true;
        };
        let mut seen: HashSet<&str> = HashSet::new();
        let mut queue: Vec<&str> = self.workspace_members.iter().map(String::as_str).collect();
        while let Some(id) = queue.pop() {
            if id == package.id {
                return true;
            }
            let node = resolve.nodes.iter().find(|node| node.id == id);
            let Some(node) = node.filter(|_| seen.insert(id)) else {
                continue;
            };
            let dependencies = node.dependencies.iter().map(String::as_str);
            queue.extend(dependencies.filter(|to| self.asks(node, to)));
        }
        false
    }

    /// Whether `node` asks for `to`, as its features are.
    fn asks(&self, node: &Node, to: &str) -> bool {
        let find = |id: &str| self.packages.iter().find(|package| package.id == id);
        let (Some(from), Some(to)) = (find(&node.id), find(to)) else {
            return true;
        };
        let mut named = from.dependencies.iter().filter(|d| d.name == to.name);
        named.any(|d| !d.optional || node.features.contains(&d.name))
    }

    /// Our own packages.
    pub fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }
}

fn output(command: &mut Command) -> Result<String> {
    let done = command
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    if !done.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(String::from_utf8(done.stdout)?)
}

#[cfg(test)]
pub(crate) mod examples {
    //! Small graphs for the checks' tests.

    use super::*;

    /// A graph of our own packages with `(package, kind, dependency)` edges and others beside.
    pub(crate) fn graph(edges: &[(&str, Option<&str>, &str)], others: &[(&str, &str)]) -> Metadata {
        let mut packages: Vec<Package> = Vec::new();
        for (name, kind, dependency) in edges {
            let at = packages.iter().position(|p| p.name == *name);
            let at = at.unwrap_or_else(|| {
                packages.push(package(name, "Apache-2.0"));
                packages.len() - 1
            });
            packages[at].dependencies.push(Dependency {
                name: (*dependency).to_owned(),
                kind: kind.map(str::to_owned),
                optional: false,
            });
        }
        let workspace_members = packages.iter().map(|p| p.id.clone()).collect();
        packages.extend(others.iter().map(|(name, license)| package(name, license)));
        Metadata {
            packages,
            workspace_members,
            resolve: None,
        }
    }

    fn package(name: &str, license: &str) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: (!license.is_empty()).then(|| license.to_owned()),
            dependencies: Vec::new(),
        }
    }
}
