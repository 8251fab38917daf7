// Verifies webhooks with the official library of Standard Webhooks: each line of standard
// input is {"secret", "headers", "body"}, and each line of the output says whether it is
// accepted.
import { createInterface } from 'node:readline'
import { Webhook } from 'standardwebhooks'

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line)
  try {
    new Webhook(secret).verify(body, headers)
    console.log('accepted')
  } catch (error) {
    console.log(`refused: ${error.message}`)
  }
}
