// Package vault seals the secrets that have to be read again, such as the key of
// a payment account, before they are stored.
//
// What it is: AES-256-GCM under keys that are derived from the installation's
// secrets. A sealed text names its key and is bound to its place: its purpose
// and its owner.
//
// What always holds: a sealed text that was changed in any bit, or that lies in
// another place, does not open. The first secret seals; every one that is given
// opens, so a secret can be replaced while the old one's texts are sealed again.
//
// What it is not: storage, nor for values that are only compared: passwords and API keys
// are hashed.
package vault
