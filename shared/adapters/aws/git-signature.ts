import { createHash, createHmac } from "node:crypto";
import type { SigningCredentials } from "#shared/adapters/aws/eks-token.ts";

/**
 * The login for a repository of CodeCommit or of a connection, as `aws codecommit credential-helper` makes it: a signature
 * of the repository's address, which AWS takes for 15 minutes. The signed time has no `Z`; in the password it stands
 * between the time and the signature.
 */
export function gitSignature(
  { hostname, pathname, region }: { readonly hostname: string; readonly pathname: string; readonly region: string },
  { accessKeyId, secretAccessKey, sessionToken }: SigningCredentials,
  now: Date,
): { readonly username: string; readonly password: string } {
  const time = now.toISOString().replace(/[-:]|\.\d+Z$/g, "");
  const day = time.slice(0, 8);
  const scope = `${day}/${region}/codecommit/aws4_request`;
  const asked = `GIT\n${pathname}\n\nhost:${hostname}\n\nhost\n`;
  const signed = ["AWS4-HMAC-SHA256", time, scope, createHash("sha256").update(asked).digest("hex")].join("\n");
  const key = [day, region, "codecommit", "aws4_request"].reduce<string | Buffer>(mac, `AWS4${secretAccessKey}`);
  return {
    username: sessionToken === undefined ? accessKeyId : `${accessKeyId}%${sessionToken}`,
    password: `${time}Z${mac(key, signed).toString("hex")}`,
  };
}

function mac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
