import { lstat, readdir, readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { waitAnswered } from "#cli/commands/reconcile.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { type NamedObject, pathOfObject } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { counted } from "#shared/base/counted.ts";
import { defined } from "#shared/base/defined.ts";
import { hexOf, sha256 } from "#shared/base/digest.ts";
import { isIgnored, type ListedFile } from "#shared/source/tree-listing.ts";

const maxFiles = 20_000;

export interface PushOptions {
  /** The version. */
  readonly as: string;
  readonly dir: string;
  readonly origin?: string;
  readonly wait?: boolean;
}

type PushAnswer =
  | { readonly state: "upload"; readonly upload: string; readonly url: string }
  | { readonly state: "accepted" | "unchanged"; readonly revision: string; readonly reconcile: number };

/** Packs a folder, and pushes it to a Source of the kind `external` as a version. The same folder is the same bytes anywhere. */
export async function pushSource(session: Session, name: string, options: PushOptions): Promise<ExitReason> {
  const { as: version, dir, origin } = options;
  const files = await filesIn(resolve(session.io.cwd, dir), dir);
  const packed = await packArtifact(files);
  session.announce();
  const object: NamedObject = { kind: "Source", name };
  const path = `${pathOfObject(object, session.namespace())}/uploads`;
  const digest = hexOf(sha256(packed));
  const { reason } = session.options;
  const body = { version, sha256: digest, bytes: packed.length, ...defined({ origin, reason }) };
  const push = (more: object) => session.api.call<PushAnswer>({ method: "POST", path, body: { ...body, ...more } });
  const first = await push({});
  let last = first;
  if (first.state === "upload") {
    await new HttpTransfer().upload(first.url, packed);
    last = await push({ upload: first.upload });
  }
  if (last.state === "upload") throw new Error("the API gave a second place for one upload");
  const what = last.state === "accepted" ? `pushed (${counted(files.length, "file")})` : "was pushed before";
  session.io.out(`source/${name} ${last.revision} ${what}\n`);
  if (options.wait === true) return waitAnswered(session, { object, number: last.reconcile });
  session.note(`  next: starling describe source/${name}${session.where()}   (whether it was accepted)`);
  return "done";
}

/** All files of the folder but those of version control and CI, which a Source of git leaves out, too. */
async function filesIn(root: string, dir: string): Promise<readonly ListedFile[]> {
  const next = "starling source push NAME --as VERSION --dir FOLDER";
  if ((await stat(root).catch(() => undefined))?.isDirectory() !== true)
    throw usageFailure(`${dir} is not a folder`, next);
  const files: ListedFile[] = [];
  const read = async (below: string): Promise<void> => {
    for (const entry of (await readdir(join(root, below))).toSorted()) {
      const path = below === "" ? entry : `${below}/${entry}`;
      if (isIgnored(path)) continue;
      const found = await lstat(join(root, path));
      if (found.isDirectory()) {
        await read(path);
        continue;
      }
      if (!found.isFile())
        throw usageFailure(`${path} in ${dir} is no file, and cannot be pushed; copy what it leads to`, next);
      const content = new Uint8Array(await readFile(join(root, path)));
      files.push({ path, executable: (found.mode & 0o100) !== 0, content });
      if (files.length > maxFiles)
        throw usageFailure(`${dir} has more than ${maxFiles} files; push a smaller folder`, next);
    }
  };
  await read("");
  if (files.length === 0) throw usageFailure(`${dir} has no files`, next);
  return files;
}
