/** A git server that answers what a test has it answer. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { listenOnLoopback } from "#local/base/loopback-server.ts";

export interface GitRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type GitAnswer = (response: ServerResponse, request: IncomingMessage) => void | Promise<void>;

export interface GitAnswers {
  readonly refs?: GitAnswer;
  readonly pack?: GitAnswer;
}

export interface ScriptedGit {
  readonly url: string;
  readonly requests: readonly GitRequest[];
  stop(): Promise<void>;
}

/** Each by the path it is asked at: `/info/refs` for the first request, `/git-upload-pack` for the next. */
export async function startScriptedGit(answers: GitAnswers): Promise<ScriptedGit> {
  const { refs = speaking("ls-refs", "fetch=shallow"), pack = (response) => void response.end() } = answers;
  const requests: GitRequest[] = [];
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    const { method = "", url = "", headers } = request;
    requests.push({ method, url, headers, body: (await buffer(request)).toString() });
    await (url.includes("/info/refs") ? refs : pack)(response, request);
  });
  const { origin, stop } = await listenOnLoopback(server);
  return { url: `${origin}/x.git`, requests, stop };
}

export const flush = Buffer.from("0000");
export const delimiter = Buffer.from("0001");

export function line(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from((bytes.length + 4).toString(16).padStart(4, "0")), bytes]);
}

/** A packet of a sideband: 1 of the pack, 2 of the progress, 3 of an error. */
export function band(number: number, content: string | Buffer): Buffer {
  return line(Buffer.concat([Buffer.from([number]), Buffer.from(content)]));
}

export function saying(...packets: readonly Buffer[]): GitAnswer {
  return (response) => void response.end(Buffer.concat(packets));
}

export const advertised = "application/x-git-upload-pack-advertisement";

/** Protocol v2, with these capabilities. */
export function speaking(...capabilities: readonly string[]): GitAnswer {
  const lines = ["version 2", ...capabilities].map((each) => line(`${each}\n`));
  return advertising(...lines);
}

/** The protocol before it, with these features after the first reference. */
export function speakingV0(ref: string, features: string): GitAnswer {
  return advertising(line(`${ref}\0${features}\n`));
}

function advertising(...lines: readonly Buffer[]): GitAnswer {
  return (response) => {
    response.setHeader("content-type", advertised);
    response.end(Buffer.concat([line("# service=git-upload-pack\n"), flush, ...lines, flush]));
  };
}
