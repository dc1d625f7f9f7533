import { randomBytes } from "node:crypto";

/** A principal and its access key. */
export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Set for temporary credentials. Requests carry it as `X-Amz-Security-Token`. */
  readonly sessionToken?: string;
  /** Set for temporary credentials. From this time on they are refused as expired. */
  readonly expiresAt?: Date;
  /** For example `arn:aws:iam::000000000000:user/ada` or `arn:aws:sts::000000000000:assumed-role/deployer/ci`. */
  readonly principalArn: string;
  /**
   * The API routes that the principal's policies allow, as method and path, for example `GET/v1/*`. The default is all.
   */
  readonly invokes?: readonly string[];
}

/** Temporary credentials. */
export type SessionKey = Required<Omit<AccessKey, "invokes">>;

/** Every principal that may sign requests on this machine: people, the roles of functions, and sessions of roles. */
export class Principals {
  readonly #keys = new Map<string, AccessKey>();

  constructor(keys: readonly AccessKey[] = []) {
    for (const key of keys) this.#keys.set(key.accessKeyId, key);
  }

  find(accessKeyId: string): AccessKey | undefined {
    return this.#keys.get(accessKeyId);
  }

  add(key: AccessKey): void {
    this.#keys.set(key.accessKeyId, key);
  }

  /** Makes temporary credentials expire now. */
  expire(accessKeyId: string): void {
    const key = this.#keys.get(accessKeyId);
    if (key?.sessionToken !== undefined) this.#keys.set(accessKeyId, { ...key, expiresAt: new Date(0) });
  }

  /** Creates temporary credentials, as STS and Lambda do. */
  startSession(session: { readonly principalArn: string; readonly expiresAt: Date }): SessionKey {
    const key = {
      accessKeyId: `ASIA${randomBytes(8).toString("hex").toUpperCase()}`,
      secretAccessKey: randomBytes(30).toString("base64"),
      sessionToken: randomBytes(96).toString("base64"),
      ...session,
    };
    this.#keys.set(key.accessKeyId, key);
    return key;
  }
}
