// Answers the vectors of verify_chain (three conventions), boundary and cache_lengths:
//
//     g++ -std=c++17 -O1 consumer.cpp -o consumer && ./consumer ../../vectors > results.json
//     specverify vectors check results.json --only verify_chain/inverse-cdf --only boundary
//
// With a second argument, "planted", the coin is compared by <= and not by <.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// ---- as much of JSON as the vectors need ------------------------------------------------------------------------

struct Json {
    enum Kind { Null, Bool, Number, String, List, Object } kind = Null;
    double number = 0;
    std::string text;
    std::vector<Json> items;                            // of a list
    std::vector<std::pair<std::string, Json>> members;  // of an object

    const Json* find(const std::string& key) const {
        for (auto& member : members)
            if (member.first == key) return &member.second;
        return nullptr;
    }
    const Json& at(const std::string& key) const {
        if (auto found = find(key)) return *found;
        throw std::runtime_error("no " + key);
    }
};

struct Reader {
    const std::string& source;
    size_t place = 0;

    char next() {
        while (place < source.size() && std::isspace(static_cast<unsigned char>(source[place]))) place++;
        if (place == source.size()) throw std::runtime_error("the text ends early");
        return source[place];
    }
    bool take(char wanted) {
        if (next() != wanted) return false;
        place++;
        return true;
    }
    std::string word() {
        std::string found;
        for (place++; source.at(place) != '"'; place++) {
            if (source[place] == '\\') place++;  // no vector has an escape that matters
            found += source.at(place);
        }
        place++;
        return found;
    }
    Json value() {
        Json made;
        char first = next();
        if (first == '"') {
            made.kind = Json::String;
            made.text = word();
        } else if (first == '[') {
            made.kind = Json::List;
            for (place++; !take(']'); take(',')) made.items.push_back(value());
        } else if (first == '{') {
            made.kind = Json::Object;
            for (place++; !take('}'); take(',')) {
                next();
                std::string key = word();
                if (!take(':')) throw std::runtime_error("a key without a value");
                made.members.emplace_back(key, value());
            }
        } else if (std::isalpha(static_cast<unsigned char>(first))) {
            while (std::isalpha(static_cast<unsigned char>(source[place]))) made.text += source[place++];
            made.kind = made.text == "null" ? Json::Null : Json::Bool;
        } else {
            char* end;
            made.kind = Json::Number;
            made.number = std::strtod(source.c_str() + place, &end);
            place = end - source.c_str();
        }
        return made;
    }
};

// ---- what is given ----------------------------------------------------------------------------------------------

using Row = std::vector<double>;

double rational(const std::string& text) {  // "3/8", "1", or "nan"
    size_t slash = text.find('/');
    double above = std::strtod(text.c_str(), nullptr);
    return slash == std::string::npos ? above : above / std::strtod(text.c_str() + slash + 1, nullptr);
}

Row row_of(const Json& json, size_t vocabulary) {
    Row row(vocabulary, 0.0);
    for (size_t token = 0; token < json.items.size(); token++) row[token] = rational(json.items[token].text);
    for (auto& member : json.members) row.at(std::stoul(member.first)) = rational(member.second.text);
    return row;
}

struct Given {
    std::vector<Row> p, q;
    std::vector<long> draft;
    Row coins, keys;
    double final = 0;
    size_t vocabulary = 0;
};

Given given_of(const Json& inputs) {
    Given given;
    const Json* size = inputs.find("vocabulary");
    given.vocabulary = size ? static_cast<size_t>(size->number) : inputs.at("p").items[0].items.size();
    for (auto& token : inputs.at("draft").items) given.draft.push_back(static_cast<long>(token.number));
    for (auto& row : inputs.at("p").items) given.p.push_back(row_of(row, given.vocabulary));
    for (size_t i = 0; i < given.draft.size(); i++) {
        const Json& row = inputs.at("q").items[i];
        given.q.push_back(row_of(row, given.vocabulary));
        if (row.kind == Json::Null) given.q[i].at(given.draft[i]) = 1.0;  // a point mass
    }
    if (auto coins = inputs.find("coins"))
        for (auto& coin : coins->items) given.coins.push_back(rational(coin.text));
    if (auto keys = inputs.find("keys"))
        for (auto& key : keys->items) given.keys.push_back(rational(key.text));
    if (auto last = inputs.find("final")) given.final = rational(last->text);
    return given;
}

// ---- the verifier -----------------------------------------------------------------------------------------------

bool usable(const Given& given) {
    auto has_mass = [](const Row& row) {
        double sum = 0;
        for (double mass : row) sum += mass;
        return sum > 0;  // not for NaN
    };
    for (long token : given.draft)
        if (token < 0 || token >= static_cast<long>(given.vocabulary)) return false;
    return std::all_of(given.p.begin(), given.p.end(), has_mass) && std::all_of(given.q.begin(), given.q.end(), has_mass);
}

long by_inverse_cdf(const Row& weights, double uniform) {
    double total = 0, below = 0;
    for (double weight : weights) total += weight;
    long last = -1;
    for (size_t token = 0; token < weights.size(); token++) {
        if (!(weights[token] > 0)) continue;
        below += weights[token];
        last = static_cast<long>(token);
        if (uniform * total < below) break;
    }
    return last;
}

long by_race(const Row& weights, const Row& keys) {
    long winner = -1;
    for (size_t token = 0; token < weights.size(); token++)
        if (weights[token] > 0 && (winner < 0 || keys[token] / weights[token] < keys[winner] / weights[winner]))
            winner = static_cast<long>(token);
    return winner;
}

std::pair<size_t, std::vector<long>> verify(const Given& given, bool planted) {
    size_t gamma = given.draft.size(), accepted = 0;
    for (; accepted < gamma; accepted++) {
        long token = given.draft[accepted];
        double left = given.coins[accepted] * given.q[accepted][token], right = given.p[accepted][token];
        if (!(planted ? left <= right : left < right)) break;
    }
    Row weights = given.p[accepted];
    if (accepted < gamma) {
        double sum = 0;
        for (size_t token = 0; token < weights.size(); token++) {
            weights[token] = std::max(weights[token] - given.q[accepted][token], 0.0);
            sum += weights[token];
        }
        if (!(sum > 0)) weights = given.p[accepted];
    }
    std::vector<long> tokens(given.draft.begin(), given.draft.begin() + accepted);
    tokens.push_back(given.keys.empty() ? by_inverse_cdf(weights, given.final) : by_race(weights, given.keys));
    return {accepted, tokens};
}

// ---- answers ----------------------------------------------------------------------------------------------------

std::string listed(const std::vector<long>& values) {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); i++) text += (i ? "," : "") + std::to_string(values[i]);
    return text + "]";
}

std::string chain_answer(const Json& inputs, bool planted) {
    Given given = given_of(inputs);
    if (!usable(given)) return "{\"refused\":true}";
    auto verified = verify(given, planted);
    return "{\"accepted\":" + std::to_string(verified.first) + ",\"tokens\":" + listed(verified.second) + "}";
}

std::string cache_answer(const Json& inputs) {
    auto count = [&](const char* name) { return static_cast<long>(inputs.at(name).number); };
    long after = count("known") + count("accepted"), keep = after;
    if (inputs.at("cache").text == "draft") keep = std::min(after, count("held"));
    std::vector<long> unfed;
    for (long position = keep; position <= after; position++) unfed.push_back(position);
    return "{\"keep\":" + std::to_string(keep) + ",\"unfed\":" + listed(unfed) + "}";
}

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + " cannot be read");
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

void print_answers(const std::string& folder, bool planted) {
    const std::vector<std::string> flags = {"inverse-cdf", "point-mass-drafts", "exponential-race"};
    std::printf("{\"format\":\"specverify vector results\",\"format_version\":1,\"program\":\"consumer.cpp\",\"answers\":[");
    const char* comma = "";
    for (std::string kind : {"verify_chain", "boundary", "cache_lengths"}) {
        std::string source = text_of(folder + "/" + kind + ".json");
        Json all = Reader{source}.value();
        for (auto& vector : all.at("vectors").items) {
            std::string flag = vector.at("flags").items[0].text;
            if (kind == "verify_chain" && std::find(flags.begin(), flags.end(), flag) == flags.end()) continue;
            const Json& inputs = vector.at("inputs");
            std::string answer = kind == "cache_lengths" ? cache_answer(inputs) : chain_answer(inputs, planted);
            std::printf("%s\n{\"id\":\"%s\",\"answer\":%s}", comma, vector.at("id").text.c_str(), answer.c_str());
            comma = ",";
        }
    }
    std::printf("]}\n");
}

int main(int count, char** arguments) {
    if (count < 2) return std::fputs("usage: consumer VECTORS [planted]\n", stderr), 2;
    try {
        print_answers(arguments[1], count > 2 && std::string(arguments[2]) == "planted");
    } catch (const std::exception& error) {
        return std::fprintf(stderr, "consumer: %s\n", error.what()), 2;
    }
}
