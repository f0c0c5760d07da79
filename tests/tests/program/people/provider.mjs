// An identity provider for tests: whoever signs in as NAME is NAME@example.org, and teams are in the name ("ann.analysts").
// It also signs whatever claims a test posts to /sign, with its own key or as the header says.
//   node provider.mjs PACKAGES CERTIFICATE KEY
import { createHmac, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const [packages, certificate, key] = process.argv.slice(2);
const { Provider } = await import(`${packages}/oidc-provider/lib/index.js`);
const { SignJWT } = await import(`${packages}/jose/dist/webapi/index.js`);

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' };

const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) });
server.listen(0, '127.0.0.1', () => {
  const issuer = `https://localhost:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'watershed',
      client_secret: 'the-secret-of-the-service',
      redirect_uris: ['https://localhost/auth/callback'],
      grant_types: ['authorization_code'],
      response_types: ['code'],
    }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'teams'] },
    conformIdTokenClaims: false,
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        email: `${id.split('.')[0]}@example.org`,
        email_verified: !id.startsWith('eve'),
        name: id,
        teams: id.split('.').slice(1),
      }),
    }),
    cookies: { keys: ['keys of a test'] },
    jwks: { keys: [jwk] },
    pkce: { required: () => true },
  });
  // The service gets its port after the provider.
  provider.Client.prototype.redirectUriAllowed = (uri) => new URL(uri).pathname.endsWith('/auth/callback');
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (request.url !== '/sign') return answer(request, response);
    let body = '';
    request.on('data', (piece) => { body += piece; });
    request.on('end', async () => {
      const { header, claims } = JSON.parse(body);
      const all = { iss: issuer, aud: 'watershed', exp: Math.floor(Date.now() / 1000) + 600, ...claims };
      for (const [name, value] of Object.entries(all)) if (value === null) delete all[name];
      response.end(await sign({ alg: 'RS256', kid: 'one', ...header }, all));
    });
  });
  // What the tests wait for.
  console.log(issuer.replace('https://', 'http://'));
});

async function sign(header, claims) {
  if (header.alg === 'RS256') return new SignJWT(claims).setProtectedHeader(header).sign(privateKey);
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const message = `${part(header)}.${part(claims)}`;
  if (header.alg === 'none') return `${message}.`;
  // The public key is everybody's, and is no secret to sign with.
  const known = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' });
  return `${message}.${createHmac('sha256', known).update(message).digest('base64url')}`;
}
