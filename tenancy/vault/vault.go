package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"purser/ids"
)

// MinSecret is how many bytes a secret has at least.
const MinSecret = 32

// Place is where a sealed text belongs. It is not stored with the text, and has to
// be the same when the text is opened. What a secret does not have is zero.
type Place struct {
	Purpose string // such as "stripe api key"
	Org     ids.ID
	App     ids.ID
	Row     ids.ID // the connection or user that it belongs to
}

// SeedOf is the place of a person's authenticator seed.
func SeedOf(user ids.ID) Place { return Place{Purpose: "totp seed", Row: user} }

// Vault seals and opens. It is safe for concurrent use.
type Vault struct {
	random  io.Reader
	current key
	known   map[keyID]key
}

// The layout of a sealed text: a version, the key's id, the nonce, and the
// ciphertext with its tag.
const (
	version    = 1
	keyIDSize  = 8
	nonceSize  = 12
	checkSize  = 32
	headerSize = 1 + keyIDSize
)

type keyID [keyIDSize]byte

type key struct {
	id    keyID
	aead  cipher.AEAD
	check []byte
}

// New makes a vault that seals with the first secret and opens with all of them.
// One key seals at most 2³² texts before its random nonces might meet; that is a
// text a second for a hundred years.
func New(random io.Reader, secrets ...[]byte) (*Vault, error) {
	if len(secrets) == 0 {
		return nil, errors.New("vault: there is no secret")
	}
	v := &Vault{random: random, known: make(map[keyID]key, len(secrets))}
	for i, secret := range secrets {
		k, err := derive(secret)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			v.current = k
		}
		v.known[k.id] = k
	}
	return v, nil
}

// derive makes a key of a secret that serves other purposes as well: what is known
// of one key tells nothing of the others.
func derive(secret []byte) (k key, err error) {
	if len(secret) < MinSecret {
		return k, fmt.Errorf("vault: a secret has %d bytes, and needs %d", len(secret), MinSecret)
	}
	material, err := hkdf.Key(sha256.New, secret, nil, "purser vault 1: aes-256-gcm", 32)
	if err != nil {
		return k, fmt.Errorf("vault: %w", err)
	}
	name, err := hkdf.Key(sha256.New, secret, nil, "purser vault 1: key id", keyIDSize)
	if err != nil {
		return k, fmt.Errorf("vault: %w", err)
	}
	k.id = keyID(name)
	if k.check, err = hkdf.Key(sha256.New, secret, nil, "purser vault 1: check value", checkSize); err != nil {
		return k, fmt.Errorf("vault: %w", err)
	}
	block, err := aes.NewCipher(material)
	if err != nil {
		return k, fmt.Errorf("vault: %w", err)
	}
	k.aead, err = cipher.NewGCM(block)
	return k, err
}

// Seal makes of a secret what may be stored at its place.
func (v *Vault) Seal(at Place, secret []byte) ([]byte, error) {
	sealed := make([]byte, headerSize+nonceSize, headerSize+nonceSize+len(secret)+v.current.aead.Overhead())
	sealed[0] = version
	copy(sealed[1:], v.current.id[:])
	nonce := sealed[headerSize:]
	if _, err := io.ReadFull(v.random, nonce); err != nil {
		return nil, fmt.Errorf("vault: no randomness: %w", err)
	}
	return v.current.aead.Seal(sealed, nonce, secret, at.bound(sealed[:headerSize])), nil
}

// The errors of Open. Neither says anything about the secret.
var (
	ErrUnknownKey = errors.New("vault: sealed with a secret that is not given any more")
	ErrSpoilt     = errors.New("vault: this was not sealed here, or for another place, or was changed since")
)

// Open gives back what was sealed for the place.
func (v *Vault) Open(at Place, sealed []byte) ([]byte, error) {
	if len(sealed) < headerSize+nonceSize || sealed[0] != version {
		return nil, ErrSpoilt
	}
	header, nonce, body := sealed[:headerSize], sealed[headerSize:headerSize+nonceSize], sealed[headerSize+nonceSize:]
	k, known := v.known[keyID(header[1:])]
	if !known {
		return nil, ErrUnknownKey
	}
	secret, err := k.aead.Open(nil, nonce, body, at.bound(header))
	if err != nil {
		return nil, ErrSpoilt
	}
	return secret, nil
}

// CheckValue tells the current secret from others and reveals nothing of it: it is
// derived one way, for this purpose alone.
func (v *Vault) CheckValue() []byte { return bytes.Clone(v.current.check) }

// Recognizes reports whether a check value is of a secret that this vault was given.
func (v *Vault) Recognizes(check []byte) bool {
	for _, k := range v.known {
		if bytes.Equal(k.check, check) {
			return true
		}
	}
	return false
}

// CanOpen reports whether a text names a secret that this vault was given.
func (v *Vault) CanOpen(sealed []byte) bool {
	if len(sealed) < headerSize+nonceSize || sealed[0] != version {
		return false
	}
	_, known := v.known[keyID(sealed[1:headerSize])]
	return known
}

// Rewrap seals again, with the current secret, what an earlier one has sealed. It
// reports whether there was anything to do.
func (v *Vault) Rewrap(at Place, sealed []byte) (again []byte, changed bool, err error) {
	secret, err := v.Open(at, sealed)
	if err != nil {
		return nil, false, err
	}
	if keyID(sealed[1:headerSize]) == v.current.id {
		return sealed, false, nil
	}
	again, err = v.Seal(at, secret)
	return again, err == nil, err
}

// bound is what the tag vouches for besides the secret. The purpose comes last: it
// is the only part of any length, so no two places are bound alike.
func (p Place) bound(header []byte) []byte {
	bound := make([]byte, 0, len(header)+3*len(p.Org)+len(p.Purpose))
	bound = append(bound, header...)
	bound = append(bound, p.Org[:]...)
	bound = append(bound, p.App[:]...)
	bound = append(bound, p.Row[:]...)
	return append(bound, p.Purpose...)
}
