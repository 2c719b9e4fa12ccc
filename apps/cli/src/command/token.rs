//! `turnwire token`: creates, lists and revokes API tokens in the server's file of hashes.

use anyhow::Result;
use serde_json::json;
use turnwire_event::{Clock as _, Owner, Timestamp};
use turnwire_identity::{TokenFile, TokenGrant, TokenRecord};
use turnwire_serve::config::{ServerConfig, SettingSources};
use turnwire_session::SystemClock;

use crate::args::{
    TokenArgs, TokenCommand, TokenCreateArgs, TokenFileArgs, TokenListArgs, TokenRevokeArgs,
};
use crate::terminal::output::print;
use crate::terminal::sanitize::sanitized_line;

/// The longest label that is shown.
const LABEL_CHARS_MAX: usize = 100;

/// Creates, lists or revokes, as the subcommand says.
pub(crate) fn run(args: &TokenArgs) -> Result<()> {
    match &args.command {
        TokenCommand::Create(args) => create(args),
        TokenCommand::List(args) => list(args),
        TokenCommand::Revoke(args) => revoke(args),
    }
}

fn token_file(args: &TokenFileArgs) -> Result<TokenFile> {
    if let Some(path) = &args.file {
        return Ok(TokenFile::new(path));
    }
    let sources = SettingSources {
        config: args.config.clone(),
        home: args.home.clone(),
        ..SettingSources::from_env()
    };
    Ok(TokenFile::new(ServerConfig::load(&sources)?.tokens_file()))
}

fn create(args: &TokenCreateArgs) -> Result<()> {
    let now = SystemClock.now();
    let grant = TokenGrant {
        owner: Owner {
            tenant: args.tenant,
            principal: args.principal.clone(),
        },
        scopes: args.scope.iter().copied().collect(),
        label: args.label.clone(),
        expires_at: args.expires.map(|time| {
            let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(now.as_millis().saturating_add(ms))
        }),
    };
    let file = token_file(&args.file)?;
    let (token, record) = file.create(grant, now)?;
    print(&format!("{}\n", token.reveal()));
    eprintln!(
        "created {} for {}, {}, with: {}",
        record.id,
        record.owner.principal,
        end_text(&record),
        record.scopes
    );
    Ok(())
}

fn list(args: &TokenListArgs) -> Result<()> {
    let records = token_file(&args.file)?.records()?;
    let records = records.into_iter().map(|(_, record)| record);
    if args.json {
        let tokens: Vec<_> = records.map(|record| record_json(&record)).collect();
        let list = json!({ "tokens": tokens });
        print(&format!("{}\n", serde_json::to_string_pretty(&list)?));
        return Ok(());
    }
    let mut text = String::new();
    for record in records {
        let label = record.label.as_deref().unwrap_or_default();
        let label = sanitized_line(label, LABEL_CHARS_MAX);
        let line = format!(
            "{}  {}  {}  {}  {}  {label}",
            record.id,
            record.owner.tenant,
            record.owner.principal,
            record.scopes,
            end_text(&record),
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if text.is_empty() {
        eprintln!("no tokens; create one: turnwire token create --principal NAME");
    }
    print(&text);
    Ok(())
}

fn revoke(args: &TokenRevokeArgs) -> Result<()> {
    let record = token_file(&args.file)?.revoke(&args.id)?;
    eprintln!("revoked {} of {}", record.id, record.owner.principal);
    Ok(())
}

fn end_text(record: &TokenRecord) -> String {
    match record.expires_at {
        Some(at) => format!("expires {at}"),
        None => "no end".to_owned(),
    }
}

fn record_json(record: &TokenRecord) -> serde_json::Value {
    let scopes: Vec<&str> = record.scopes.iter().map(|scope| scope.name()).collect();
    json!({
        "id": record.id,
        "tenant": record.owner.tenant.to_string(),
        "principal": record.owner.principal.as_str(),
        "scopes": scopes,
        "label": record.label,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
    })
}
