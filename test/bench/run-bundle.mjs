/**
 * `node run-bundle.mjs BUNDLE [EVENT]`: loads the code of a function as Lambda does, in a process that did nothing else,
 * lets it work on an event where one is given, and prints what that took. JavaScript, so that no type is stripped here.
 */

const sampleEveryMs = 10;
const [bundle, event] = process.argv.slice(2);

const before = process.cpuUsage();
const started = performance.now();
const { handler } = await import(bundle);
const importMs = performance.now() - started;
const { user, system } = process.cpuUsage(before);
const importCpuMs = (user + system) / 1000;
const importedRssBytes = process.memoryUsage.rss();

let peakHeapBytes = 0;
const sample = () => {
  peakHeapBytes = Math.max(peakHeapBytes, process.memoryUsage().heapUsed);
};
let ms = 0;
if (event !== undefined) {
  const sampling = setInterval(sample, sampleEveryMs);
  const deadline = performance.now() + 900_000;
  const context = { awsRequestId: "bench", getRemainingTimeInMillis: () => deadline - performance.now() };
  const begun = performance.now();
  const { batchItemFailures } = await handler(JSON.parse(event), context);
  ms = performance.now() - begun;
  clearInterval(sampling);
  if (batchItemFailures.length > 0) throw new Error("the function gave a message back");
}
sample();
const peakRssBytes = process.resourceUsage().maxRSS * 1024;
process.stdout.write(JSON.stringify({ importMs, importCpuMs, importedRssBytes, ms, peakHeapBytes, peakRssBytes }));
// Connections that are kept would keep this process too.
process.exit();
