// Answers the vectors of verify_chain (two conventions and block verification), boundary and warp:
//
//     rustc --edition 2021 -O consumer.rs && ./consumer ../../vectors > results.json
//     specverify vectors check results.json --only verify_chain/block-verification --only warp
//
// With a second argument, "planted", a rejected draft is replaced from p and not from the residual.
use std::fmt::Write;

// ---- as much of JSON as the vectors need ----------------------------------------------------------------------

enum Json {
    Null,
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn find(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }
    fn at(&self, key: &str) -> &Json {
        self.find(key).unwrap_or_else(|| panic!("no {key}"))
    }
    fn items(&self) -> &[Json] {
        if let Json::List(items) = self { items } else { panic!("no list") }
    }
    fn text(&self) -> &str {
        if let Json::Text(text) = self { text } else { panic!("no text") }
    }
    fn integer(&self) -> i64 {
        if let Json::Number(number) = self { *number as i64 } else { panic!("no number") }
    }
    fn rational(&self) -> f64 {
        let text = self.text();
        let number = |part: &str| part.parse::<f64>().expect("a number");
        match text.split_once('/') {
            Some((above, below)) => number(above) / number(below),
            None => number(text), // "nan" too
        }
    }
}

struct Reader<'a> {
    source: &'a [u8],
    place: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> u8 {
        while self.source[self.place].is_ascii_whitespace() {
            self.place += 1;
        }
        self.source[self.place]
    }
    fn take(&mut self, wanted: u8) -> bool {
        let found = self.next() == wanted;
        self.place += found as usize;
        found
    }
    fn until(&mut self, ends: fn(u8) -> bool) -> String {
        let start = self.place;
        while !ends(self.source[self.place]) {
            self.place += 1 + (self.source[self.place] == b'\\') as usize;
        }
        String::from_utf8_lossy(&self.source[start..self.place]).into_owned()
    }
    fn word(&mut self) -> String {
        self.next();
        self.place += 1;
        let word = self.until(|byte| byte == b'"');
        self.place += 1;
        word
    }
    fn value(&mut self) -> Json {
        match self.next() {
            b'"' => Json::Text(self.word()),
            b'[' => {
                self.place += 1;
                let mut items = Vec::new();
                while !self.take(b']') {
                    items.push(self.value());
                    self.take(b',');
                }
                Json::List(items)
            }
            b'{' => {
                self.place += 1;
                let mut members = Vec::new();
                while !self.take(b'}') {
                    let key = self.word();
                    assert!(self.take(b':'), "a key without a value");
                    members.push((key, self.value()));
                    self.take(b',');
                }
                Json::Object(members)
            }
            _ => {
                let text = self.until(|byte| b",]} \n".contains(&byte));
                text.parse().map_or(Json::Null, Json::Number)
            }
        }
    }
}

// ---- what is given --------------------------------------------------------------------------------------------

type Row = Vec<f64>;

struct Given {
    p: Vec<Row>,
    q: Vec<Row>,
    draft: Vec<usize>,
    coins: Row,
    last: f64,
}

fn row_of(json: &Json, size: usize, token: Option<usize>) -> Row {
    let mut row = vec![0.0; size];
    match json {
        Json::List(items) => row = items.iter().map(Json::rational).collect(),
        Json::Object(members) => {
            for (token, mass) in members {
                row[token.parse::<usize>().expect("a token")] = mass.rational();
            }
        }
        _ => row[token.expect("a draft")] = 1.0,
    }
    row
}

fn given_of(inputs: &Json) -> Option<Given> {
    let rows = inputs.at("p").items();
    let size = inputs.find("vocabulary").map_or_else(|| rows[0].items().len(), |size| size.integer() as usize);
    let draft: Vec<i64> = inputs.at("draft").items().iter().map(Json::integer).collect();
    if draft.iter().any(|&token| token < 0 || token >= size as i64) {
        return None;
    }
    let draft: Vec<usize> = draft.into_iter().map(|token| token as usize).collect();
    let p: Vec<Row> = rows.iter().map(|row| row_of(row, size, None)).collect();
    let q: Vec<Row> = inputs.at("q").items().iter().zip(&draft).map(|(row, &token)| row_of(row, size, Some(token))).collect();
    let coins = inputs.at("coins").items().iter().map(Json::rational).collect();
    let usable = p.iter().chain(&q).all(|row| row.iter().sum::<f64>() > 0.0);
    usable.then(|| Given { p, q, draft, coins, last: inputs.at("final").rational() })
}

// ---- the verifiers --------------------------------------------------------------------------------------------

fn excess(p: &[f64], q: &[f64], weight: f64) -> Row {
    p.iter().zip(q).map(|(p, q)| (weight * p - q).max(0.0)).collect()
}

fn by_inverse_cdf(weights: &[f64], uniform: f64) -> usize {
    let total: f64 = weights.iter().sum();
    let (mut below, mut last) = (0.0, 0);
    for (token, &weight) in weights.iter().enumerate().filter(|(_, &weight)| weight > 0.0) {
        below += weight;
        last = token;
        if uniform * total < below {
            break;
        }
    }
    last
}

fn emitted(given: &Given, accepted: usize, weight: f64, planted: bool) -> String {
    let mut weights = given.p[accepted].clone();
    if accepted < given.draft.len() && !planted {
        let left = excess(&weights, &given.q[accepted], weight);
        if left.iter().sum::<f64>() > 0.0 {
            weights = left;
        }
    }
    let mut tokens = given.draft[..accepted].to_vec();
    tokens.push(by_inverse_cdf(&weights, given.last));
    format!("{{\"accepted\":{accepted},\"tokens\":{tokens:?}}}")
}

fn token_by_token(given: &Given, planted: bool) -> String {
    let stays = |i: &usize| given.coins[*i] * given.q[*i][given.draft[*i]] < given.p[*i][given.draft[*i]];
    let accepted = (0..given.draft.len()).take_while(stays).count();
    emitted(given, accepted, 1.0, planted)
}

fn as_a_block(given: &Given, planted: bool) -> String {
    let gamma = given.draft.len();
    let mut ratios = vec![1.0];
    for (i, &token) in given.draft.iter().enumerate() {
        ratios.push(f64::min(1.0, ratios[i] * given.p[i][token] / given.q[i][token]));
    }
    let chance = |i: usize| {
        if i == gamma {
            return ratios[i];
        }
        let spare: f64 = excess(&given.p[i], &given.q[i], ratios[i]).iter().sum();
        if spare > 0.0 || ratios[i] < 1.0 { spare / (spare + 1.0 - ratios[i]) } else { ratios[i] }
    };
    let accepted = (1..=gamma).rev().find(|&i| given.coins[i - 1] < chance(i)).unwrap_or(0);
    emitted(given, accepted, ratios[accepted], planted)
}

fn warped(inputs: &Json) -> String {
    let mut row: Row = inputs.at("pmf").items().iter().map(Json::rational).collect();
    let normalised = |row: Row| {
        let total: f64 = row.iter().sum();
        row.into_iter().map(|mass| mass / total).collect::<Row>()
    };
    let parameter = |name: &str| inputs.find(name).map(Json::rational);
    let wrong = |value: Option<f64>, most: f64| value.is_some_and(|value| !(0.0..=most).contains(&value));
    if wrong(parameter("temperature"), f64::MAX) || wrong(parameter("top_p"), 1.0) || wrong(parameter("min_p"), 1.0) {
        return "{\"refused\":true}".to_string();
    }
    let ranked = |row: &Row| {
        let mut tokens: Vec<usize> = (0..row.len()).collect();
        tokens.sort_by(|&one, &other| row[other].total_cmp(&row[one])); // stable: lower ids first
        tokens
    };
    if let Some(temperature) = parameter("temperature") {
        let best = ranked(&row)[0];
        let most = row[best];
        row = if temperature == 0.0 {
            (0..row.len()).map(|token| (token == best) as u8 as f64).collect()
        } else {
            normalised(row.iter().map(|mass| (mass / most).powf(1.0 / temperature)).collect())
        };
    }
    if let Some(k) = inputs.find("top_k") {
        let order = ranked(&row);
        for &token in order.iter().skip(k.integer() as usize) {
            row[token] = 0.0;
        }
        row = normalised(row);
    }
    if let Some(mass) = parameter("top_p") {
        let mut before = 0.0;
        for token in ranked(&row) {
            let here = row[token];
            if before >= mass {
                row[token] = 0.0;
            }
            before += here;
        }
        row = normalised(row);
    }
    if let Some(ratio) = parameter("min_p") {
        let most = row.iter().copied().fold(0.0, f64::max);
        row = normalised(row.into_iter().map(|mass| if mass >= most * ratio { mass } else { 0.0 }).collect());
    }
    format!("{{\"pmf\":{row:?}}}")
}

fn answer(group: &str, inputs: &Json, planted: bool) -> Option<String> {
    let verifier: fn(&Given, bool) -> String = match group {
        "verify_chain/inverse-cdf" | "verify_chain/point-mass-drafts" | "boundary/inverse-cdf" => token_by_token,
        "verify_chain/block-verification" => as_a_block,
        _ => return group.starts_with("warp/").then(|| warped(inputs)),
    };
    Some(given_of(inputs).map_or("{\"refused\":true}".to_string(), |given| verifier(&given, planted)))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = arguments.get(1).expect("usage: consumer VECTORS [planted]");
    let planted = arguments.get(2).is_some_and(|word| word == "planted");
    let mut lines = String::new();
    for kind in ["verify_chain", "boundary", "warp"] {
        let path = format!("{folder}/{kind}.json");
        let source = std::fs::read(&path).unwrap_or_else(|error| {
            eprintln!("consumer: {path} cannot be read: {error}");
            std::process::exit(2)
        });
        let all = Reader { source: &source, place: 0 }.value();
        for vector in all.at("vectors").items() {
            let group = format!("{kind}/{}", vector.at("flags").items()[0].text());
            if let Some(answer) = answer(&group, vector.at("inputs"), planted) {
                let comma = if lines.is_empty() { "" } else { "," };
                write!(lines, "{comma}\n{{\"id\":\"{}\",\"answer\":{answer}}}", vector.at("id").text()).unwrap();
            }
        }
    }
    let head = "{\"format\":\"specverify vector results\",\"format_version\":1,\"program\":\"consumer.rs\",\"answers\":[";
    println!("{head}{lines}]}}");
}
