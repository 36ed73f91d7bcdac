// node-llama-cpp 3.21.1: of the drafts of a round at most one is accepted.
//
//     NODE_LLAMA_CPP=FOLDER node node_llamacpp_one_draft.mjs [FILE.gguf]
//
// FOLDER has node_modules; without FILE the tiny model of this repository is taken. Status 0 fixed, 1 present, 125 cannot
// be tested. The predictor returns the next tokens of the greedy text, which is known; the control is one token a round.
import {pathToFileURL} from "node:url";
const ours = new URL("../../../specverify/engines/node_llamacpp/models/target.gguf", import.meta.url).pathname;
try {
    const file = `${process.env.NODE_LLAMA_CPP}/node_modules/node-llama-cpp/dist/index.js`;
    const {getLlama, TokenPredictor} = await import(pathToFileURL(file).href);
    const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 1});
    const model = await llama.loadModel({modelPath: process.argv[2] ?? ours});
    const context = await model.createContext({sequences: 3, contextSize: 256, threads: 1, flashAttention: false});

    class Known extends TokenPredictor {
        constructor(text, drafts) { super(); Object.assign(this, {text, drafts, done: 0}); }
        reset() { this.done = 0; }
        pushTokens(tokens) { this.done += tokens.length; }
        predictTokens() { return this.text.slice(this.done, this.done + this.drafts); }
    }
    async function decode(tokenPredictor) {
        const sequence = context.getSequence({tokenPredictor}), tokens = [];
        for await (const token of sequence.evaluate([3, 1, 2, 3, 1], {temperature: 0, yieldEogToken: true}))
            if (tokens.push(token) === 24)
                break;
        return [tokens, sequence.tokenPredictions];
    }
    const [text] = await decode();
    const [[, one], [, three]] = [await decode(new Known(text, 1)), await decode(new Known(text, 3))];
    console.log(`expected no right draft to be refuted, got ${three.refuted} of three a round (${three.used} used); ` +
        `control ${one.refuted} of one a round (${one.used} used)`);
    process.exit(one.refuted > 0 || one.used === 0 ? 125 : three.refuted > 0 ? 1 : 0);
} catch (error) {
    console.log(`cannot be tested: ${error}`);
    process.exit(125);
}
