//! The dependency graph from `cargo metadata`, reduced to the fields that the checks read.
//!
//! Only packages for this platform are requested: a build has downloaded those, so a fresh
//! machine needs no network.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// All packages, and which of them belong to the workspace.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// Every package of the graph.
    pub packages: Vec<Package>,
    /// The ids of the workspace members.
    pub workspace_members: Vec<String>,
    /// The dependency edges with features; `None` if cargo did not resolve them.
    #[serde(default)]
    pub resolve: Option<Resolve>,
}

/// The resolved dependency graph.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// Every package with its dependencies.
    pub nodes: Vec<Node>,
}

/// One package in the graph.
#[derive(Debug, Deserialize)]
pub struct Node {
    pub id: String,
    /// The enabled features of the package.
    pub features: Vec<String>,
    /// The ids of its possible dependencies.
    pub dependencies: Vec<String>,
}

/// A package as `cargo metadata` reports it.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// The package's id in the graph.
    pub id: String,
    pub name: String,
    pub version: String,
    /// The licence as an SPDX expression.
    pub license: Option<String>,
    /// The declared dependencies of the package.
    pub dependencies: Vec<Dependency>,
}

/// A declared dependency of a package.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The name of the required package.
    pub name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
    /// True if a feature must enable it.
    #[serde(default)]
    pub optional: bool,
}

impl Metadata {
    /// Runs `cargo metadata`; offline if the packages are downloaded.
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

    /// Parses the output of `cargo metadata`.
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).context("cargo metadata printed something unexpected")
    }

    /// True if a build contains the package: it is reachable from the workspace over enabled
    /// dependencies. The graph also lists dependencies of disabled features.
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
            queue.extend(dependencies.filter(|to| self.depends_on(node, to)));
        }
        false
    }

    /// True if `node` depends on `to` with its enabled features.
    fn depends_on(&self, node: &Node, to: &str) -> bool {
        let find = |id: &str| self.packages.iter().find(|package| package.id == id);
        let (Some(from), Some(to)) = (find(&node.id), find(to)) else {
            return true;
        };
        let mut named = from.dependencies.iter().filter(|d| d.name == to.name);
        named.any(|d| !d.optional || node.features.contains(&d.name))
    }

    /// The packages of this workspace.
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

    /// A graph of workspace packages with `(package, kind, dependency)` edges, and other packages.
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
