package nodes

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/plainjson"
)

// InviteLifetime is how long a code of an invitation is valid.
const InviteLifetime = 10 * time.Minute

// ErrName is returned for a name that no node can have, and ErrKey for a text that isn't a public key.
var (
	ErrName = errors.New("a node's name has 1 to 32 of a-z0-9-, and begins with a letter or a digit")
	ErrKey  = errors.New("this is no Ed25519 public key")
)

const codeLength = 10 // characters, each of 5 bits

// Invite makes a code with which one device can join until the returned time. Only the code's hash is stored.
func (s *Service) Invite(ctx context.Context) (code string, until time.Time, err error) {
	code, until = strings.ToLower(rand.Text()[:codeLength]), time.Now().Add(InviteLifetime)
	if err := s.cfg.Registry.Invite(ctx, codeHash(code), until); err != nil {
		return "", until, err
	}
	return code[:codeLength/2] + "-" + code[codeLength/2:], until, nil
}

// codeHash returns the hash that is stored for a code. Upper case, spaces and hyphens make no difference.
func codeHash(code string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(code))
	sum := sha256.Sum256([]byte("parley node code\x00" + plain))
	return hex.EncodeToString(sum[:])
}

// Join lets a device with a code join, under a name and with its public key, and returns the public key of the fleet. Its
// errors are ErrName, ErrKey, stored.ErrCode, stored.ErrTaken, or the store's.
func (s *Service) Join(ctx context.Context, code, name string, key []byte) (ed25519.PublicKey, error) {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`).MatchString(name) {
		return nil, ErrName
	}
	if len(key) != ed25519.PublicKeySize {
		return nil, ErrKey
	}
	own, err := s.cfg.Key(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.cfg.Registry.Join(ctx, codeHash(code), stored.Node{Name: name, Key: key, JoinedAt: time.Now()}); err != nil {
		return nil, err
	}
	s.emit(nodeChanged, name, "", "")
	s.requestReload()
	return own.Public().(ed25519.PublicKey), nil //nolint:forcetypeassert // so it is documented
}

// Accept accepts a node with everything that it offers now, and returns the names of the tools. If digest isn't "", the
// node's offer must have that digest: see [Node.Digest]. Its errors are stored.ErrChanged if the offer differs,
// stored.ErrUnknown and stored.ErrRevoked.
func (s *Service) Accept(ctx context.Context, name, digest string) ([]string, error) {
	n, err := s.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if digest != "" && digest != n.Digest() {
		return nil, stored.ErrChanged
	}
	raw, all, err := acceptance(n.Offer.Tools)
	if err != nil {
		return nil, fmt.Errorf("write down what is accepted of the node %s: %w", name, err)
	}
	if err := s.cfg.Registry.Accept(ctx, name, n.Node.Offer, raw); err != nil {
		return nil, err
	}
	s.emit(nodeChanged, name, "", "")
	s.requestReload()
	return all, nil
}

// Digest returns a short text that changes whenever the node's offer or its device changes.
func (n Node) Digest() string {
	sum := sha256.New()
	sum.Write(n.Key)
	for _, t := range n.Offer.Tools {
		sum.Write([]byte(t.Digest()))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Revoke revokes a node: its link ends, whichever process has it, and its key opens no other link.
func (s *Service) Revoke(ctx context.Context, name string) error {
	outcome, err := plainjson.Marshal(nodes.Outcome{Status: nodes.NotRun, Error: tools.Errorf(tools.NotFound, textRevokedUnsent, name)})
	if err != nil {
		return fmt.Errorf("write down how calls end: %w", err)
	}
	if err := s.cfg.Registry.Revoke(ctx, name, outcome, time.Now()); err != nil {
		return err
	}
	s.emit(nodeChanged, name, "", "")
	s.cfg.WaitOver()
	s.requestReload()
	return nil
}

// announce tells the owners that a node waits to be accepted, or that it offers new tools that wait.
func (s *Service) announce(ctx context.Context, n stored.Node) {
	all := decodeNode(n)
	set := all.unacceptedSet()
	if set != "" { // the owners are also told about another device with the same name
		set = hex.EncodeToString(n.Key) + " " + set
	}
	switch {
	case set == "":
	case n.State == stored.Waiting && n.IsKeyless():
		s.cfg.TellOwners(ctx, n.Name, set, fmt.Sprintf(textHeard, n.Name))
	case n.State == stored.Waiting:
		s.cfg.TellOwners(ctx, n.Name, set, fmt.Sprintf(textNodeWaiting, n.Name, tools.Clip(all.Offer.Platform, 40)))
	default:
		list := make([]string, len(all.Unaccepted))
		for i, t := range all.Unaccepted {
			list[i] = t.Name
		}
		s.cfg.TellOwners(ctx, n.Name, set, fmt.Sprintf(textNewTools, n.Name, tools.Clip(strings.Join(list, ", "), 500)))
	}
}

// FleetKey returns a function for [Config].Key. The key is made by the first process that needs it: once stores a value
// unless there is one, and returns the stored one, which is the same for all processes.
func FleetKey(once func(ctx context.Context, value string) (kept string, err error)) func(context.Context) (ed25519.PrivateKey, error) {
	var mu sync.Mutex
	var key ed25519.PrivateKey
	return func(ctx context.Context) (ed25519.PrivateKey, error) {
		mu.Lock()
		defer mu.Unlock()
		if key != nil {
			return key, nil
		}
		fresh := make([]byte, ed25519.SeedSize)
		_, _ = rand.Read(fresh) // it never fails
		kept, err := once(ctx, base64.StdEncoding.EncodeToString(fresh))
		if err != nil {
			return nil, fmt.Errorf("read the key for nodes: %w", err)
		}
		seed, err := base64.StdEncoding.DecodeString(kept)
		if err != nil || len(seed) != ed25519.SeedSize {
			return nil, errors.New("the stored key for nodes is broken")
		}
		key = ed25519.NewKeyFromSeed(seed)
		return key, nil
	}
}
