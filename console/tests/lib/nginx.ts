// Debian's nginx in front of the program, as a server for others would have it.

import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { folder } from "./program.ts";

const NGINX = ["/usr/sbin/nginx", "/usr/bin/nginx"].find((place) => existsSync(place));

/** The reason why there can be no proxy here; none if there can. */
export const lacksNginx = NGINX ? undefined : "there is no nginx";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** Starts nginx, which hands `prefix` and all below it to a port as it is. */
export async function nginx(prefix: string, target: number): Promise<{ origin: string; stop(): Promise<void> }> {
  // nginx takes no port of the system's choice; one that was taken in between is tried again.
  for (let attempt = 0; attempt < 5; attempt++) {
    const at = folder();
    const port = await freePort();
    writeFileSync(join(at, "nginx.conf"), configuration(at, port, prefix, target));
    const child = spawn(NGINX ?? "nginx", ["-p", at, "-c", join(at, "nginx.conf"), "-e", join(at, "errors")], {
      stdio: "ignore",
    });
    const ended = new Promise<boolean>((done) => child.once("exit", () => done(false)));
    if (await Promise.race([answers(port), ended])) {
      const stop = async () => {
        child.kill("SIGQUIT");
        child.kill("SIGTERM");
        await ended;
      };
      return { origin: `http://127.0.0.1:${port}`, stop };
    }
  }
  throw new Error("nginx found no port");
}

/** Waits until something answers. */
async function answers(port: number): Promise<boolean> {
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${port}/nowhere`);
      return true;
    } catch {
      await new Promise((done) => setImmediate(done));
    }
  }
}

/** As the user who runs it, for the program answers to nobody else. */
function configuration(at: string, port: number, prefix: string, target: number): string {
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const kept = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const folders = kept.map((what) => `${what}_temp_path ${at}/${what};`).join(" ");
  return `
    daemon off; ${user} worker_processes 1; pid ${at}/pid;
    events { worker_connections 256; }
    http {
      access_log off; ${folders}
      map $http_upgrade $upgrades { default upgrade; '' ''; }
      server {
        listen 127.0.0.1:${port};
        location ${prefix}/ {
          proxy_pass http://127.0.0.1:${target};
          proxy_http_version 1.1;
          proxy_set_header Host $http_host;
          proxy_set_header Upgrade $http_upgrade;
          proxy_set_header Connection $upgrades;
          proxy_buffering off;
          proxy_read_timeout 1h;
        }
      }
    }`;
}
