import { serialise } from "#cli/format/serialise.ts";
import { verdictText } from "#cli/format/verdict-text.ts";
import { isData } from "#cli/output/output.ts";
import { askGit, whyNotHere } from "#cli/seeing/ask-git.ts";
import { includedVerdicts } from "#cli/seeing/included-verdicts.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import { verifyGit } from "#shared/adapters/signatures/verify-git.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage, StarlingError } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { RevisionItem } from "#shared/fleet/api/history-item.ts";
import type { SourceObject } from "#shared/fleet/api/objects.ts";
import type { SourceVerdict } from "#shared/fleet/api/source-verdict.ts";
import { type GitUpstream, upstreamOf } from "#shared/fleet/kinds/source.ts";
import type { Artifact } from "#shared/fleet/rows/object-rows.ts";
import { signatureCodes } from "#shared/fleet/sources/source-status.ts";
import type { GitRemote, GitRepository } from "#shared/ports.ts";
import { namesTags } from "#shared/source/git-ref-schema.ts";
import { commitIn, formatRevision, nameInKind, type ResolvedReference } from "#shared/source/git-reference.ts";

export interface VerifyOptions {
  readonly commit?: string;
  readonly tag?: string;
  readonly chartVersion?: string;
}

/** More revisions than a Source has in the 30 days for which they are kept. */
const revisionsKept = 10_000;

/**
 * Shows what was verified of a Source: of its present revision, of one that it had, or of a commit or tag that Starling does
 * not have, which is verified here.
 */
export async function verify(session: Session, name: string, options: VerifyOptions): Promise<ExitReason> {
  const path = pathOfObject({ kind: "Source", name }, session.namespace());
  const asked = askedIn(options);
  const source = await session.api.call<SourceObject>({ method: "GET", path });
  const isDemanded = verificationOf(source) !== undefined;
  const own = isDemanded ? await judge(session, source, asked) : await formerVerdict(session, source, asked);
  // Nothing is packed of a revision that is verified here.
  const included = own.by === "here" ? [] : await includedVerdicts(session, source, shownIn(own));
  const verdict: SourceVerdict = included.length === 0 ? own : { ...own, included };
  const { output } = session.options;
  session.io.out(isData(output) ? serialise(verdict, output) : verdictText(verdict, session.io.now()));
  return verdict.verified ? "done" : "no";
}

/** The revision that has an artifact. */
function shownIn(verdict: SourceVerdict): string | undefined {
  return verdict.verified ? verdict.revision : (verdict.inUse ?? verdict.revision);
}

/** Which revision is meant; undefined for the present one. */
type Asked = { readonly by: "commit" | "tag" | "version"; readonly text: string } | undefined;

function askedIn(options: VerifyOptions): Asked {
  const { commit, tag, chartVersion: version } = options;
  const given = Object.entries({ commit, tag, version }).flatMap(([by, text]) =>
    text === undefined ? [] : [{ by: by as "commit" | "tag" | "version", text }],
  );
  const [only, other] = given;
  if (other !== undefined) {
    throw usageFailure(
      `a ${only?.by} and a ${other.by} are given both; one is enough`,
      "starling source verify --help",
    );
  }
  return only;
}

function verificationOf({ spec }: SourceObject): object | undefined {
  const upstream = upstreamOf(spec);
  return "verify" in upstream ? upstream.verify : undefined;
}

/** A Source that demands nothing now may have demanded a signature of a revision before. */
async function formerVerdict(session: Session, source: SourceObject, asked: Asked): Promise<SourceVerdict> {
  const stored = asked === undefined ? undefined : await storedVerdict(session, source, asked);
  return stored?.verified === true ? stored : notDemanded(source);
}

function notDemanded(source: SourceObject): SourceVerdict {
  return refusedBy("starling", { ...headOf(source), reason: "NotDemanded", message: whyNot(source) });
}

function whyNot({ spec }: SourceObject): string {
  const { kind } = upstreamOf(spec);
  switch (kind) {
    case "archive":
      return "an archive has no verify: spec.archive.sha256 says which bytes the Source takes";
    case "s3":
      return "a bucket has no verify: the Source takes what is in it, and the policy of the bucket says who writes there";
    case "external":
      return "pushed versions have no verify: spec.external.principals says who may push";
    default:
      return `the Source takes everything: spec.${kind}.verify is not set`;
  }
}

async function judge(session: Session, source: SourceObject, asked: Asked): Promise<SourceVerdict> {
  if (asked === undefined) return presentVerdict(source);
  const { git } = source.spec;
  requireFitting(source, asked);
  const stored = await storedVerdict(session, source, asked);
  if (stored?.verified === true) return stored;
  const refused = refusedVerdict(source, asked);
  if (refused !== undefined) return refused;
  if (git !== undefined && !git.url.startsWith("ssh:")) return verifiedHere(session, source, { git, asked });
  if (stored !== undefined) return stored;
  // A signature that is kept apart may still come, so that its lack is no refusal that lasts.
  const present = presentVerdict(source);
  if (!present.verified && signatureCodes.has(present.reason) && present.message.split(" ").includes(asked.text)) {
    return present;
  }
  const { name } = source.metadata;
  throw usageFailure(
    `Source ${name} never had ${asked.by} ${asked.text}, and only git over HTTPS is verified from here`,
    `starling history source/${quoted(name)}${session.where()}`,
  );
}

function requireFitting({ spec, metadata: { name } }: SourceObject, { by, text }: NonNullable<Asked>): void {
  if (spec.git === undefined && by === "commit") {
    throw usageFailure(
      `Source ${name} has no commits`,
      `starling source verify ${quoted(name)} --chart-version VERSION`,
    );
  }
  if (spec.git !== undefined && by === "version") {
    throw usageFailure(
      `Source ${name} has tags of git`,
      `starling source verify ${quoted(name)} --tag ${quoted(text)}`,
    );
  }
  if (by === "commit" && !/^[0-9a-f]{7,40}$/.test(text)) {
    throw usageFailure(`--commit ${text} is no commit; give 7 to 40 of its digits`, "--commit 4be8a9034f1c");
  }
}

/** The verdict of the newest poll. */
function presentVerdict(source: SourceObject): SourceVerdict {
  const { artifact, conditions, observedGeneration } = source.status;
  const head = { ...headOf(source), ...defined({ inUse: artifact?.revision }) };
  if (observedGeneration !== source.metadata.generation) {
    const message = "the Source is changed or new, and was not polled since";
    return refusedBy("starling", { ...head, reason: "NotPolled", message });
  }
  const of = (desired: string) => conditions.find(({ type }) => type === desired);
  const condition = of("SourceVerified") ?? of("Ready");
  if (condition?.status === "True" && artifact?.verified !== undefined) {
    return verifiedBy("starling", { ...headOf(source), artifact });
  }
  const { reason = "NotPolled", message = "the Source was not polled yet" } = condition ?? {};
  return refusedBy("starling", { ...head, reason, message });
}

interface Known extends Pick<Artifact, "revision"> {
  readonly verified?: Artifact["verified"];
}

/** The verdict that is kept with a revision of the Source. */
async function storedVerdict(
  session: Session,
  source: SourceObject,
  asked: NonNullable<Asked>,
): Promise<SourceVerdict | undefined> {
  const path = `${pathOfObject({ kind: "Source", name: source.metadata.name }, session.namespace())}/revisions`;
  const { items } = await readList<RevisionItem>(session, { path, limit: revisionsKept });
  const { artifact } = source.status;
  const known: readonly Known[] = [...(artifact === undefined ? [] : [artifact]), ...items];
  const had = known.filter(({ revision }) => isAsked(source, revision, asked));
  const found = had.find(({ verified }) => verified !== undefined) ?? had[0];
  if (found === undefined) return undefined;
  if (found.verified !== undefined) return verifiedBy("starling", { ...headOf(source), artifact: found });
  const message = "the Source demanded no signature when it took this revision";
  return refusedBy("starling", { ...headOf(source), revision: found.revision, reason: "NotDemanded", message });
}

/** The revision that the newest poll refused. */
function refusedVerdict(source: SourceObject, asked: NonNullable<Asked>): SourceVerdict | undefined {
  const { refused } = source.status;
  if (refused === undefined || !signatureCodes.has(refused.code)) return undefined;
  if (refused.generation !== source.metadata.generation) return undefined;
  const [revision = ""] = refused.revision.split(" ");
  if (!isAsked(source, revision, asked)) return undefined;
  const { code, message } = refused;
  return refusedBy("starling", { ...headOf(source), revision, reason: code, message });
}

function isAsked({ spec }: SourceObject, revision: string, { by, text }: NonNullable<Asked>): boolean {
  if (by === "commit") return commitIn(revision).startsWith(text);
  const name = revision.slice(0, Math.max(0, revision.lastIndexOf("@")));
  const isNamed = name === text || nameInKind(name) === text || revision === text;
  return isNamed && (spec.git === undefined || namesTags(spec.git.ref));
}

interface Here {
  readonly git: GitUpstream;
  readonly asked: NonNullable<Asked>;
}

/** Verifies with the present keys of the Source, by a fetch with the caller's own git. */
async function verifiedHere(session: Session, source: SourceObject, here: Here): Promise<SourceVerdict> {
  const { verify } = here.git;
  if (verify === undefined) return notDemanded(source);
  const { by, text } = here.asked;
  if (by === "commit" && verify.mode !== "HEAD") {
    const message = `Source ${source.metadata.name} verifies tags (mode ${verify.mode}); a commit alone is not enough`;
    throw usageFailure(message, `starling source verify ${quoted(source.metadata.name)} --tag TAG`);
  }
  const now = session.io.now();
  const url = new URL(here.git.url).href;
  let revision = text;
  try {
    return await askGit(session, url, async (git, repository) => {
      const { reference, oid } = await found(git, repository, here);
      revision = formatRevision(reference);
      const tree = await git.fetchTree(repository, { oid, paths: [] });
      const verified = await verifyGit({ url, reference, ...tree }, verify, now);
      const artifact = { revision, verified: { ...verified, at: now.toISOString() } };
      return verifiedBy("here", { ...headOf(source), artifact });
    });
  } catch (error) {
    const reason = errorCode(error);
    if (signatureCodes.has(reason)) {
      return refusedBy("here", { ...headOf(source), revision, reason, message: errorMessage(error) });
    }
    if (!(error instanceof StarlingError)) throw error;
    const next = `git verify-${by} ${quoted(text)}   (in a clone)`;
    throw new CliFailure(`${by} ${text} cannot be fetched from here: ${whyNotHere(error, url)}`, {
      exit: "unknown",
      next,
    });
  }
}

interface Found {
  readonly reference: ResolvedReference;
  /** The object whose signature counts. */
  readonly oid: string;
}

async function found(git: GitRemote, repository: GitRepository, { git: { verify }, asked }: Here): Promise<Found> {
  const { by, text } = asked;
  if (by === "commit") {
    const isWhole = text.length === 40;
    if (!isWhole)
      throw usageFailure(`--commit ${text}: a commit needs all of its 40 digits here`, "git rev-parse HEAD");
    return { reference: { commit: text }, oid: text };
  }
  const name = `refs/tags/${text}`;
  const tag = (await git.listRefs(repository, [name])).find(({ ref }) => ref === name);
  if (tag === undefined)
    throw usageFailure(`${repository.url} has no ${name}`, `git ls-remote --tags ${quoted(repository.url)}`);
  const commit = tag.peeled ?? tag.oid;
  return { reference: { name: text, commit }, oid: verify?.mode === "HEAD" ? commit : tag.oid };
}

function headOf({ metadata: { name, namespace = "" } }: SourceObject) {
  return { source: name, namespace };
}

type Head = ReturnType<typeof headOf>;

function verifiedBy(
  by: SourceVerdict["by"],
  { artifact, ...head }: Head & { readonly artifact: Known },
): SourceVerdict {
  const { revision, verified } = artifact;
  if (verified === undefined) throw new Error("nothing was verified");
  return { ...head, by, revision, verified: true, ...verified };
}

type Refused = Omit<Extract<SourceVerdict, { verified: false }>, "by" | "verified">;

function refusedBy(by: SourceVerdict["by"], refused: Refused): SourceVerdict {
  return { ...refused, by, verified: false };
}
