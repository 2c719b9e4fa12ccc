//! The container file, the compose file and the Helm chart, as a linter, Helm and the schemas of
//! Kubernetes judge them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use turnwire_testkit::environment;

fn ops(path: &str) -> PathBuf {
    environment::root().join("ops").join(path)
}

/// Runs a program of the Python environment; the result is its standard output.
fn run(program: &str, arguments: &[&str], file: &Path) -> String {
    let bin = environment::python("ops").join("bin");
    let ran = Command::new(bin.join(program))
        .args(arguments)
        .arg(file)
        .output()
        .unwrap_or_else(|why| panic!("{program}: {why}"));
    assert!(
        ran.status.success(),
        "{program}: {}",
        environment::text(&ran)
    );
    String::from_utf8(ran.stdout).expect("text")
}

#[test]
fn container_and_compose_files_are_valid() {
    run(
        "hadolint",
        &["--failure-threshold", "info"],
        &ops("container/Containerfile"),
    );
    let schema = ["--builtin-schema", "vendor.compose-spec"];
    run("check-jsonschema", &schema, &ops("container/compose.yaml"));
    let schema = ["--builtin-schema", "vendor.compose-spec"];
    let wrong = tempfile::tempdir().expect("a folder");
    let file = wrong.path().join("compose.yaml");
    fs::write(&file, "services: {a: {image: b, restrat: always}}\n").expect("written");
    let bin = environment::python("ops").join("bin/check-jsonschema");
    let checked = Command::new(bin).args(schema).arg(&file).output();
    assert!(!checked.expect("the checker").status.success());
}

#[test]
fn container_has_no_root_and_no_writable_image() {
    let file = fs::read_to_string(ops("container/Containerfile")).expect("a file");
    let lines: Vec<&str> = file.lines().collect();
    assert!(lines.contains(&"USER 10001:10001"));
    assert!(file.contains("HEALTHCHECK") && file.contains("/healthz"));
    let compose = fs::read_to_string(ops("container/compose.yaml")).expect("a file");
    for line in [
        "read_only: true",
        "cap_drop: [ALL]",
        "stop_grace_period: 45s",
    ] {
        assert!(compose.contains(line), "no {line}");
    }
    let prometheus = fs::read_to_string(ops("container/prometheus.yml")).expect("a file");
    assert!(prometheus.contains("job_name: turnwire\n"), "{prometheus}");
    let promtool = environment::prometheus().join("promtool");
    let arguments = ["check", "config", "--syntax-only"];
    let mut check = Command::new(promtool);
    let checked = check.args(arguments).arg(ops("container/prometheus.yml"));
    let checked = checked.output().expect("promtool");
    assert!(checked.status.success(), "{}", environment::text(&checked));
}

/// Renders the chart with further arguments, and checks it against the schemas of Kubernetes.
fn rendered(arguments: &[&str]) -> String {
    let chart = ops("helm/turnwire");
    let mut render = vec!["template", "prod"];
    render.extend(arguments);
    let text = run("helm", &render, &chart);
    let folder = tempfile::tempdir().expect("a folder");
    // There are no schemas of the objects of the Prometheus operator.
    let known: Vec<&str> = text
        .split("\n---\n")
        .filter(|object| !object.contains("apiVersion: monitoring.coreos.com"))
        .collect();
    let file = folder.path().join("objects.yaml");
    fs::write(&file, known.join("\n---\n")).expect("written");
    for version in ["1.25", "1.34"] {
        let checked = run("kubernetes-validate", &["--strict", "-k", version], &file);
        assert!(!checked.contains("WARN"), "{checked}");
    }
    text
}

fn all_options() -> String {
    ops("helm/turnwire/ci/all.yaml").display().to_string()
}

#[test]
fn chart_renders_objects_that_kubernetes_accepts() {
    let chart = ops("helm/turnwire");
    run("helm", &["lint", "--strict"], &chart);
    let least = rendered(&[]);
    for kind in [
        "StatefulSet",
        "Service",
        "ConfigMap",
        "NetworkPolicy",
        "PodDisruptionBudget",
    ] {
        assert!(least.contains(&format!("\nkind: {kind}\n")), "no {kind}");
    }
    for line in [
        "  replicas: 1",
        "        runAsNonRoot: true",
        "            readOnlyRootFilesystem: true",
        "              path: /readyz",
        "              path: /healthz",
    ] {
        assert!(least.lines().any(|found| found == line), "no line {line:?}");
    }
    let all = all_options();
    run("helm", &["lint", "--strict", "-f", &all], &chart);
    let most = rendered(&["-f", &all]);
    for kind in ["Ingress", "Secret", "ServiceMonitor", "PrometheusRule"] {
        assert!(most.contains(&format!("\nkind: {kind}\n")), "no {kind}");
    }
    let annotation = "nginx.ingress.kubernetes.io/proxy-buffering: \"off\"";
    assert!(most.contains(annotation), "{most}");
}

#[test]
fn chart_carries_the_rules_and_the_dashboard() {
    let most = rendered(&["-f", &all_options()]);
    for (path, indent) in [
        ("prometheus/turnwire.rules.yml", 2),
        ("grafana/turnwire.json", 4),
    ] {
        let shipped = fs::read_to_string(ops(path)).expect("a file");
        let mut missing = shipped.lines().filter(|line| {
            let line = format!("{}{line}", " ".repeat(indent));
            !line.trim().is_empty() && !most.contains(line.trim_end())
        });
        assert_eq!(missing.next(), None, "{path}");
    }
}

#[test]
fn chart_refuses_values_that_cannot_work() {
    let bin = environment::python("ops").join("bin/helm");
    for (set, part) in [
        ("auth.mode=none", "auth.mode"),
        ("auth.mode=jwt", "auth.jwt.issuer is needed"),
        ("replicas=2", "replicas"),
        ("publicUrl=chat.example.com", "publicUrl"),
    ] {
        let refused = Command::new(&bin)
            .args(["template", "prod", "--set", set])
            .arg(ops("helm/turnwire"))
            .output()
            .expect("helm");
        let said = environment::text(&refused);
        assert!(
            !refused.status.success() && said.contains(part),
            "{set}: {said}"
        );
    }
}
