// node-llama-cpp 3.21.1: some texts with a grammar, a draft model and confidences never come.
//
//     NODE_LLAMA_CPP=FOLDER node node_llamacpp_grammar.mjs [FILE.gguf]
//
// FOLDER has node_modules; without FILE the tiny model of this repository is taken. Status 0 fixed, 1 present, 125 cannot
// be tested. 200 texts of four tokens with drafts of the model itself; the control is the same without a draft model.
import {pathToFileURL} from "node:url";
const ours = new URL("../../../specverify/engines/node_llamacpp/models/target.gguf", import.meta.url).pathname;
try {
    const file = `${process.env.NODE_LLAMA_CPP}/node_modules/node-llama-cpp/dist/index.js`;
    const {getLlama, LlamaGrammar, ...library} = await import(pathToFileURL(file).href);
    const llama = await getLlama({gpu: false, build: "never", skipDownload: true, maxThreads: 1});
    const model = await llama.loadModel({modelPath: process.argv[2] ?? ours});
    const sizes = {sequences: 2, contextSize: 256, threads: 1, flashAttention: false};
    const [drafting, context] = [await model.createContext(sizes), await model.createContext(sizes)];

    const came = {control: 0, drafted: 0};
    function end() {
        console.log(`expected 200 texts, got ${came.drafted} of them; control ${came.control}`);
        process.exit(came.control < 200 ? 125 : came.drafted < 200 ? 1 : 0);
    }
    process.once("beforeExit", end); // the event loop has no work left, so the text that is waited for never comes
    async function texts(name, sequence) {
        for (let seed = 0, count = 0; seed < 200; seed++, count = 0) {
            const grammar = new LlamaGrammar(llama, {grammar: "root ::= [abc]+"});
            const grammarEvaluationState = new library.LlamaGrammarEvaluationState({model, grammar});
            const options = {temperature: 1, topK: 0, topP: 1, seed, grammarEvaluationState, yieldEogToken: true};
            await sequence.clearHistory();
            for await (const {token} of sequence.evaluateWithMetadata([3, 1, 2, 3, 1], {confidence: true}, options))
                if (++count === 4 || model.isEogToken(token)) break;
            came[name]++;
        }
    }
    const tokenPredictor = new library.DraftSequenceTokenPredictor(drafting.getSequence(), {minTokens: 3, maxTokens: 3, minConfidence: 0});
    await texts("control", context.getSequence());
    await texts("drafted", context.getSequence({tokenPredictor})).then(end);
} catch (error) {
    console.log(`cannot be tested: ${error}`);
    process.exit(125);
}
