//! Checks of what is beyond this folder: the port, a running server, the pack and its providers.

use std::io::ErrorKind;
use std::net::TcpListener;

use turnwire_client::{Client, Error};
use turnwire_pack::{FindingLevel, Pack, PackFiles};
use turnwire_serve::config::ServerConfig;
use turnwire_serve::host::{self, ServerVariables};

use super::check::CheckResult;

/// The address: free, or a server answers there.
pub(super) async fn port(config: &ServerConfig) -> Vec<CheckResult> {
    let (name, address) = ("port", config.listen.address);
    match TcpListener::bind(address) {
        Ok(_) => vec![CheckResult::ok(name, format!("{address} is free"))],
        Err(error) if error.kind() == ErrorKind::AddrInUse => server(config).await,
        Err(error) => vec![CheckResult::problem(
            name,
            format!("cannot listen on {address}: {error}"),
            "choose another address with --listen",
        )],
    }
}

/// The server that has the port.
async fn server(config: &ServerConfig) -> Vec<CheckResult> {
    let (name, address) = ("port", config.listen.address);
    let foreign = || {
        let found = format!("{address} is in use by something that is no turnwire");
        vec![CheckResult::problem(
            name,
            found,
            "stop it, or choose another address with --listen",
        )]
    };
    let Ok(client) = Client::new(&format!("http://{address}")) else {
        return foreign();
    };
    if client.healthz().await.is_err() {
        return foreign();
    }
    let mut checks = vec![match client.readyz().await {
        Ok(_) => CheckResult::ok(name, format!("a turnwire at {address} is ready")),
        Err(Error::Problem(problem)) => CheckResult::problem(
            name,
            format!("a turnwire at {address} is not ready: {}", problem.code),
            problem.detail.clone(),
        ),
        Err(error) => CheckResult::problem(
            name,
            format!("a turnwire at {address} is not ready: {error}"),
            "read its log",
        ),
    }];
    let own = env!("CARGO_PKG_VERSION");
    match client.version().await {
        Ok(version) if version != own => checks.push(CheckResult::warning(
            "version",
            format!("the server at {address} is turnwire {version}, this is {own}"),
            "restart the server to run the new release",
        )),
        Ok(_) | Err(_) => {}
    }
    checks
}

/// The pack that a start would run: its mistakes, and itself if it has none.
pub(super) fn pack(config: &ServerConfig) -> (Vec<CheckResult>, Option<Pack>) {
    let name = "pack";
    let Some(dir) = &config.pack.dir else {
        return (
            vec![CheckResult::ok(name, "none is named: a built-in one runs")],
            None,
        );
    };
    let path = dir.display();
    let files = match PackFiles::read(dir) {
        Ok(files) => files,
        Err(error) => {
            let found = format!("{path} cannot be read: {error}");
            return (
                vec![CheckResult::problem(
                    name,
                    found,
                    "name its folder with --pack",
                )],
                None,
            );
        }
    };
    let variables = ServerVariables::from_env().or(turnwire_demo::VARIABLE, "http://127.0.0.1:9");
    let report = host::judge(&files, &variables);
    let of = |level: FindingLevel| report.findings.iter().filter(move |it| it.level == level);
    let (errors, warnings) = (
        of(FindingLevel::Error).count(),
        of(FindingLevel::Warning).count(),
    );
    let action = format!("run turnwire check {path}");
    let check = match (errors, warnings) {
        (0, 0) => CheckResult::ok(name, format!("{path} has no mistakes")),
        (0, warnings) => {
            CheckResult::warning(name, format!("{path} has {warnings} warnings"), action)
        }
        (errors, _) => CheckResult::problem(name, format!("{path} has {errors} errors"), action),
    };
    (vec![check], report.pack.filter(|_| errors == 0))
}

/// The providers that the pack calls over the network.
pub(super) async fn providers(
    config: &ServerConfig,
    pack: &Pack,
    offline: bool,
) -> Vec<CheckResult> {
    let name = "providers";
    if offline {
        return vec![CheckResult::ok(name, "not asked (--offline)")];
    }
    let action = "check the network, the proxy and the address in providers.yaml";
    match host::reach_providers(pack, &config.dial.allow).await {
        Err(error) => vec![CheckResult::problem(name, error.to_string(), action)],
        Ok(reaches) if reaches.is_empty() => {
            vec![CheckResult::ok(name, "none is called over the network")]
        }
        Ok(reaches) => {
            let check = |reach: host::ProviderReach| {
                let (provider, host) = (reach.provider, reach.host);
                match reach.outcome {
                    // A server that is there and broken.
                    Ok((status @ 500.., _)) => CheckResult::warning(
                        name,
                        format!("{provider} at {host} answers with status {status}"),
                        "see the status page of the provider",
                    ),
                    Ok((_, took)) => {
                        let took = took.as_millis();
                        CheckResult::ok(name, format!("{provider} at {host} answers in {took} ms"))
                    }
                    Err(cause) => CheckResult::problem(
                        name,
                        format!("{provider} at {host} cannot be reached: {cause}"),
                        action,
                    ),
                }
            };
            reaches.into_iter().map(check).collect()
        }
    }
}
