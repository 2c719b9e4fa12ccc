//! User text in three languages, and the assistants that the script calls for it. English, German
//! and Spanish are covered.

use super::{call, models, request};

/// User text, and the assistants it is routed to.
const ROUTED_TEXTS: &[(&str, &[&str])] = &[
    // English
    (
        "any oat milk offers, and what's my points balance?",
        &["shop", "rewards"],
    ),
    ("show me some deals", &["shop"]),
    ("coffee", &["shop"]),
    ("unicorn offers", &["shop"]),
    ("I want to buy a helicopter", &["shop"]),
    ("my usual groceries please", &["shop"]),
    ("how many points do I have", &["rewards"]),
    ("What's my account balance?", &["rewards"]),
    ("find my coffee receipt", &["ereceipts"]),
    ("what have I spent last week?", &["ereceipts"]),
    ("where is my order?", &["support"]),
    ("I need a refund for the broken cups", &["support"]),
    ("I forgot my password", &["support"]),
    ("can I talk to a human", &["support"]),
    (
        "points, receipts and deals please",
        &["shop", "rewards", "ereceipts"],
    ),
    (
        "offers, my points, my receipts and where is my order?",
        &["shop", "rewards", "ereceipts", "support"],
    ),
    ("slow offers", &["shop"]),
    ("outage", &["shop"]),
    (
        "crash the offers, and what's my points balance?",
        &["shop", "rewards"],
    ),
    ("slow support", &["support"]),
    ("what did I buy last week?", &["ereceipts"]),
    ("my milk was bad, I want my money back", &["support"]),
    ("I'm hungry", &["shop"]),
    ("hello", &[]),
    ("help", &[]),
    ("thanks a lot!", &[]),
    ("who are you?", &[]),
    ("what's the capital of France?", &[]),
    ("asdf qwer", &[]),
    ("tell me a long story", &[]),
    ("", &[]),
    // German
    (
        "Gibt es Angebote für Hafermilch, und wie ist mein Punktestand?",
        &["shop", "rewards"],
    ),
    ("Was kostet Vollkornbrot?", &["shop"]),
    ("Hallo, wie viele Punkte habe ich?", &["rewards"]),
    ("Zeig mir meine Kassenbons von Bean House", &["ereceipts"]),
    ("Wo bleibt meine Bestellung?", &["support"]),
    (
        "Ich möchte eine Erstattung und brauche meinen Kassenbon",
        &["ereceipts", "support"],
    ),
    ("Guten Morgen!", &[]),
    ("Was kannst du?", &[]),
    ("Wie wird das Wetter?", &[]),
    // Spanish
    (
        "¿Hay ofertas de leche de avena y cuántos puntos tengo?",
        &["shop", "rewards"],
    ),
    ("quiero café barato", &["shop"]),
    ("¿Cuál es mi saldo?", &["rewards"]),
    ("muéstrame mis recibos", &["ereceipts"]),
    ("¿Dónde está mi pedido?", &["support"]),
    (
        "ofertas, puntos y mi último recibo",
        &["shop", "rewards", "ereceipts"],
    ),
    ("¡Hola! ¿Qué tal?", &[]),
    ("¿Qué puedes hacer?", &[]),
    ("¿Quién ganó el partido?", &[]),
];

// S2-003
#[tokio::test(start_paused = true)]
async fn free_text_is_routed_to_the_right_assistants() {
    let models = models();
    for (text, expected) in ROUTED_TEXTS {
        let (answer, tools) = call(&models, request("orchestrator", "en", text)).await;
        let assistants: Vec<&str> = tools
            .iter()
            .map(|(name, _)| name.strip_prefix("ask_").expect("an assistant"))
            .collect();
        assert_eq!(assistants, *expected, "{text}");
        assert!(
            tools.iter().all(|(_, input)| input["query"] == *text),
            "{text}"
        );
        assert_eq!(answer.is_empty(), !expected.is_empty(), "{text}: {answer}");
    }
}
