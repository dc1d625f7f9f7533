import { crc32, deflateRawSync } from "node:zlib";

/** 1980-01-01, so that the same files make the same archive. */
const date = 0x21;
const deflated = 8;
/** Version 2.0 of the format, which knows deflated files. */
const version = 20;

/** A zip archive of files, by their paths. Every file gets the mode 0644. */
export function zipOf(files: ReadonlyMap<string, Uint8Array>): Buffer {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let offset = 0;
  for (const [path, content] of files) {
    const name = Buffer.from(path);
    const data = deflateRawSync(content, { level: 9 });
    const common = Buffer.alloc(26);
    common.writeUInt16LE(version, 0);
    common.writeUInt16LE(deflated, 4);
    common.writeUInt16LE(date, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004"), common, name, data]);
    const after = Buffer.alloc(14);
    // A regular file of Unix.
    after.writeUInt32LE(0o100644 * 0x1_0000, 6);
    after.writeUInt32LE(offset, 10);
    // Made on Unix, and the fields of the file, without its comment.
    const by = Buffer.from([version, 3]);
    entries.push(Buffer.concat([Buffer.from("PK\u0001\u0002"), by, common, after, name]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.size, 4);
  end.writeUInt16LE(files.size, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, directory, Buffer.from("PK\u0005\u0006"), end]);
}
