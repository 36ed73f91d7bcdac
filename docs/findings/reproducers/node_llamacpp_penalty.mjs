// node-llama-cpp 3.21.1: `repeatPenalty` does not count the token before a drafted one.
//
//     NODE_LLAMA_CPP=FOLDER node node_llamacpp_penalty.mjs [FILE.gguf]
//
// FOLDER has node_modules; without FILE the tiny model of this repository is taken. Status 0 fixed, 1 present, 125 cannot
// be tested. A greedy text with prompt lookup must be the text without: that is the control.
import {pathToFileURL} from "node:url";
const ours = new URL("../../../specverify/engines/node_llamacpp/models/target.gguf", import.meta.url).pathname;
const prompt = [0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1];
try {
    const file = `${process.env.NODE_LLAMA_CPP}/node_modules/node-llama-cpp/dist/index.js`;
    const {getLlama, InputLookupTokenPredictor} = await import(pathToFileURL(file).href);
    const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 1});
    const model = await llama.loadModel({modelPath: process.argv[2] ?? ours});
    const context = await model.createContext({sequences: 2, contextSize: 256, threads: 1, flashAttention: false});

    async function text(tokenPredictor) {
        const sequence = context.getSequence({tokenPredictor}), tokens = [...prompt];
        tokenPredictor?.updateInputTokens(prompt);
        const repeatPenalty = {penalty: 1, frequencyPenalty: 0.7, punishTokens: () => tokens};
        for await (const token of sequence.evaluate(prompt, {temperature: 0, repeatPenalty, yieldEogToken: true})) {
            tokens.push(token);
            if (tokens.length === prompt.length + 8 || model.isEogToken(token))
                break;
        }
        return tokens.slice(prompt.length).join(" ");
    }
    const [plain, lookup] = [await text(), await text(new InputLookupTokenPredictor())];
    console.log(`expected ${plain}, got ${lookup}`);
    process.exit(plain === lookup ? 0 : 1);
} catch (error) {
    console.log(`cannot be tested: ${error}`);
    process.exit(125);
}
