//! Answers of the support desk: one for each topic that people write to support about.

use serde_json::{Value, json};

use crate::customer::hash_of;
use crate::language::DemoLanguage;
use crate::query::SearchQuery;

struct SupportTopic {
    id: &'static str,
    /// Prefixes of the words that select the topic, lower case, without accents, separated by spaces.
    prefixes: &'static str,
    /// In English, German and Spanish.
    answer: [&'static str; 3],
}

/// The first topic that matches is answered; the last matches every query.
const TOPICS: &[SupportTopic] = &[
    SupportTopic {
        id: "refund",
        prefixes: "refund return money erstatt ruckgabe zuruck geld reembols devol dinero broken kaputt rot damag",
        answer: [
            "you can send goods back within 30 days, and the money is with you five working days after they arrive",
            "Sie können Ware 30 Tage lang zurückgeben, und das Geld ist fünf Werktage nach Eingang bei Ihnen",
            "puede devolver los productos durante 30 días y recibe el dinero cinco días laborables después de su llegada",
        ],
    },
    SupportTopic {
        id: "delivery",
        prefixes: "deliver order ship package parcel late missing liefer bestell paket sendung pedido envio entrega paquete",
        answer: [
            "your latest order has left the warehouse and arrives tomorrow between 9 and 12",
            "Ihre letzte Bestellung hat das Lager verlassen und kommt morgen zwischen 9 und 12 Uhr an",
            "su último pedido ha salido del almacén y llega mañana entre las 9 y las 12",
        ],
    },
    SupportTopic {
        id: "account",
        prefixes: "account password login log sign email address konto passwort anmeld adresse cuenta contrasena sesion direccion",
        answer: [
            "you can change your password and your address under Profile, and a link to sign in again is sent by e-mail",
            "Passwort und Adresse ändern Sie unter Profil, und der Link zur neuen Anmeldung kommt per E-Mail",
            "puede cambiar la contraseña y la dirección en Perfil, y el enlace para entrar de nuevo llega por correo",
        ],
    },
    SupportTopic {
        id: "general",
        prefixes: "",
        answer: [
            "a colleague looks into it and writes to you within one working day",
            "eine Kollegin sieht es sich an und schreibt Ihnen innerhalb eines Werktags",
            "una compañera lo revisa y le escribe en el plazo de un día laborable",
        ],
    },
];

/// The answer to `query`, as a list of one item.
pub(crate) fn answer(principal: &str, query: &SearchQuery, language: DemoLanguage) -> Vec<Value> {
    let matches = |topic: &&SupportTopic| topic.prefixes.split(' ').any(|it| query.has_prefix(it));
    let topic = TOPICS.iter().find(matches);
    let items = topic.map(|topic| {
        let ticket = format!("T-{:05}", hash_of(principal) % 100_000);
        json!({"id": ticket, "topic": topic.id, "answer": language.pick(topic.answer), "ticket": ticket})
    });
    items.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_selects_the_topic() {
        for (text, topic) in [
            ("where is my order?", "delivery"),
            ("Ich möchte eine Erstattung", "refund"),
            ("olvidé mi contraseña", "account"),
            ("I need a human", "general"),
            ("", "general"),
        ] {
            let items = answer("user-42", &SearchQuery::new(text.chars()), DemoLanguage::De);
            assert_eq!(items[0]["topic"], topic, "{text}");
        }
    }
}
