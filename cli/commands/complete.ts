import type { Command } from "commander";
import type { ExitReason } from "#cli/session/failure.ts";
import { findKind, hasNamespace, type KindName, kindWords, listPath } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import { type GlobalOptions, openSession, type Session } from "#cli/session/session.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import type { ListedObject } from "#shared/fleet/api/unreadable-object.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import { stateWords } from "#shared/words/state-words.ts";

/** A longer list of names helps nobody who presses Tab. */
const namesRead = 500;

/** Prints each word that may stand in place of the last word. Prints nothing about errors. */
export async function complete(session: Session, words: readonly string[], program: Command): Promise<ExitReason> {
  const found = await candidates(session, words, program).catch(() => []);
  const last = words.at(-1) ?? "";
  const fitting = [...new Set(found)].filter((word) => word.startsWith(last));
  session.io.out(fitting.map((word) => `${word}\n`).join(""));
  return "done";
}

async function candidates(opened: Session, words: readonly string[], program: Command): Promise<readonly string[]> {
  const last = words.at(-1) ?? "";
  const [, inline, begun] = /^(--[\w-]+)=(.*)$/s.exec(last) ?? [];
  if (inline !== undefined && begun !== undefined) {
    const values = await candidates(opened, [...words.slice(0, -1), inline, begun], program);
    return values.map((value) => `${inline}=${value}`);
  }
  const { command, args, flag, said } = readLine(words.slice(0, -1), program);
  // With the context and namespace of the line; a person who presses Tab waits five seconds at most.
  const asked = openSession(opened.io, { timeout: "5s", ...opened.options, ...said });
  return wordsFor(asked, { last, command, args, flag });
}

interface Place extends Omit<Line, "said"> {
  readonly last: string;
}

async function wordsFor(session: Session, { last, command, args, flag }: Place): Promise<readonly string[]> {
  if (flag === "--cluster") return namesOf(session, "Cluster");
  if (flag === "--group") return namesOf(session, "SyncGroup");
  if (flag === "--state") return stateWords();
  if (flag !== undefined) return choicesOf(flag, command);
  if (last.startsWith("-")) return flagsOf(command);
  const children = command.commands.filter((child) => command.createHelp().visibleCommands(command).includes(child));
  if (children.length > 0 && args.length > 0) return [];
  if (children.length > 0) return children.map((child) => child.name());
  const [first] = command.registeredArguments.map((argument) => argument.name());
  if (first === "group" || first === "groups") return namesOf(session, "SyncGroup");
  if (first === "cluster" || command.parent?.name() === "cluster") return namesOf(session, "Cluster");
  if (first === "zone") return zoneNames(session);
  if (first !== "kind" && first !== "object") return [];
  const [kindWord, rest] = last.split("/");
  const slashed = rest === undefined ? undefined : findKind(kindWord ?? "");
  if (slashed !== undefined) return (await namesOf(session, slashed)).map((name) => `${kindWord}/${name}`);
  const kind = args[0] === undefined ? undefined : findKind(args[0]);
  return kind === undefined ? kindWords() : namesOf(session, kind);
}

interface Line {
  readonly command: Command;
  /** The arguments without flags and their values. */
  readonly args: readonly string[];
  /** The flag that still lacks its value. */
  readonly flag?: string | undefined;
  /** The flags of the line that choose the installation and the namespace. */
  readonly said: Pick<GlobalOptions, "context" | "profile" | "region" | "namespace">;
}

const aboutLine: ReadonlySet<string> = new Set(["--context", "--profile", "--region", "--namespace"]);

function readLine(words: readonly string[], program: Command): Line {
  let command = program;
  const args: string[] = [];
  const said: Record<string, string> = {};
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word.startsWith("-")) {
      const option = [...command.options, ...program.options].find(
        ({ short, long }) => word === short || word === long,
      );
      const takesValue = option?.required === true || option?.optional === true;
      if (takesValue && at === words.length - 1) return { command, args, flag: option.long ?? word, said };
      const long = option?.long ?? "";
      if (aboutLine.has(long)) said[long.slice(2)] = words[at + 1] ?? "";
      if (takesValue) at++;
      continue;
    }
    const child = command.commands.find((one) => one.name() === word);
    if (child === undefined) args.push(word);
    else command = child;
  }
  return { command, args, said };
}

/** The values that a flag accepts. */
function choicesOf(flag: string, command: Command): readonly string[] {
  const known = command.options.find(({ long }) => long === flag)?.argChoices;
  return known ?? (command.parent === null ? [] : choicesOf(flag, command.parent));
}

function flagsOf(command: Command): readonly string[] {
  const own = command.options.flatMap(({ long }) => long ?? []);
  return command.parent === null ? own : [...own, ...flagsOf(command.parent)];
}

async function namesOf(session: Session, kind: KindName): Promise<readonly string[]> {
  const path = listPath(kind, hasNamespace(kind) ? session.scope() : undefined);
  const { items } = await readList<ListedObject>(session, { path, limit: namesRead });
  return items.map(({ metadata }) => metadata.name);
}

async function zoneNames(session: Session): Promise<readonly string[]> {
  const { items } = await session.api.call<ApiList<ZoneObject>>({ method: "GET", path: "/v1/zones" });
  return items.map(({ metadata }) => metadata.name);
}
