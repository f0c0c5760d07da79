// Lists tools and calls each of a list, by an official client: PACKAGES client|sdk ADDRESS TOKEN CALLS.
// Prints what was listed, and of each call: done, problem or refused.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, which, address, token, calls] = process.argv.slice(2);
const require = createRequire(packages + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const options = { requestInit: { headers: { authorization: `Bearer ${token}` } } };
const self = { name: 'test', version: '1' };

let client, transport;
if (which === 'client') {
    const it = await load('@modelcontextprotocol/client');
    client = new it.Client(self, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    transport = new it.StreamableHTTPClientTransport(new URL(address), options);
} else {
    const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
    client = new Client(self);
    transport = new StreamableHTTPClientTransport(new URL(address), options);
}
await client.connect(transport);
const listed = (await client.listTools()).tools.map((tool) => tool.name);
const called = {};
for (const [name, given] of JSON.parse(calls)) {
    try {
        // The client holds what is structured against the tool's schema.
        const result = await client.callTool({ name, arguments: given });
        called[name] = result.isError ? 'problem' : 'done';
    } catch (error) {
        called[name] = error.code === -32602 && /no such tool/.test(error.message) ? 'refused' : `broken: ${error.message}`;
        if (called[name].startsWith('broken')) {
            console.error(name, error);
            process.exitCode = 1;
        }
    }
}
console.log(JSON.stringify({ listed, called }));
await client.close();
