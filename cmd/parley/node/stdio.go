package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"parley/bus/sqlitebus"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/tools/nodes/device"
	"parley/tools/nodes/ssh"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

// stdioFolder is the folder for a node that servers start over ssh. It contains a socket, and a journal for each
// fleet and each name that the node has there.
const stdioFolder = "stdio"

const (
	greetingTimeout = time.Minute            // how long to wait for a server's first line
	lockWait        = 5 * time.Second        // how long to wait for a process of the same home that is about to end
	lockRetry       = 100 * time.Millisecond // the time between two attempts
)

// Stdio runs the node of a home for the server that has started it over ssh and is at the other end of standard input
// and output. The home need not have joined a server. When the link ends, Stdio continues until the running calls
// have ended. If the server connects again meanwhile, the new process passes its connection on to this one. Stdio
// returns the same errors as Run.
func Stdio(ctx context.Context, c *config.Config, release string, log *slog.Logger) error {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE) // the server may be gone and read nothing more, but calls continue
	defer signal.Stop(pipes)
	conn, err := ssh.Standard()
	if err != nil {
		return newSetupError(textNoPipes, err)
	}
	defer func() { _ = conn.Close() }() // an error loses nothing that isn't lost already
	folder := filepath.Join(c.Home, stdioFolder)
	for late := time.Now().Add(lockWait); ; {
		unlock, err := lock(c.Home)
		if err == nil {
			defer unlock()
			return serveStdio(ctx, c, release, conn, folder, log)
		}
		if _, busy := errors.AsType[*sqlitebus.InUseError](err); !busy {
			return err
		}
		if passed, failed := relay(ctx, conn, folder); passed {
			return failed
		}
		if time.Now().After(late) {
			return err
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			return nil
		}
	}
}

// Check writes the greeting with which Stdio would begin, and runs nothing.
func Check(ctx context.Context, c *config.Config, release string, out io.Writer, log *slog.Logger) error {
	n, equipment, err := prepare(ctx, c, release, log)
	if err != nil {
		return err
	}
	defer equipment.close()
	key, err := readKey(c.Home)
	if err == nil && key == nil { // the key is created at the first link
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return err
	}
	return plainjson.NewEncoder(out).Encode(ssh.HelloOf(publicOf(key), n.Link.Offer.Release, n.Link.Offer.Capabilities))
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey {
	return key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented to be of this type
}

// serveStdio runs the node, first for the server at the other end of conn. This process holds the home's lock.
func serveStdio(ctx context.Context, c *config.Config, release string, conn net.Conn, folder string, log *slog.Logger) error {
	key, err := makeKey(c.Home)
	if err != nil {
		return err
	}
	n, equipment, err := prepare(ctx, c, release, log)
	if err != nil {
		return err
	}
	defer equipment.close()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	others, err := home.ListenSocket(folder, log)
	if err != nil {
		return err
	}
	defer func() { _ = others.Close() }() // it is closed below, unless something fails
	hello := ssh.HelloOf(publicOf(key), n.Link.Offer.Release, n.Link.Offer.Capabilities)
	server, err := ssh.SendHello(conn, hello, greetingTimeout)
	if err == nil {
		err = ssh.SendReady(conn, "")
	}
	if err != nil {
		return fmt.Errorf("meet the server: %w", err)
	}
	n.Link = wire.Node{Server: "ssh", ServerKey: server.Key, Name: server.Name, Key: key, Offer: n.Link.Offer}
	n.Journal = filepath.Join(folder, journalOf(server))
	h := host{listener: others, hello: hello, server: server, conns: make(chan net.Conn), log: log}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { h.accept(ctx) })
	err = n.Serve(ctx, conn, h.conns)
	stop()
	_ = others.Close() // this ends accept
	beside.Wait()
	if damaged, ok := errors.AsType[*device.DamagedError](err); ok {
		return newSetupError(textDamaged, damaged)
	}
	return err
}

// journalOf returns the name of the journal's folder. Another fleet, or the same one under another name, must not get
// the outcomes of calls that aren't its own.
func journalOf(server ssh.Greeting) string {
	sum := sha256.Sum256(append([]byte(server.Name+"\x00"), server.Key...))
	return journalFolder + "-" + hex.EncodeToString(sum[:8])
}

// A host accepts the connections of later processes of the home.
type host struct {
	listener net.Listener
	hello    ssh.Hello
	server   ssh.Greeting // the only server that may connect
	conns    chan net.Conn
	log      *slog.Logger
}

// accept accepts connections until the listener is closed, and passes them on until ctx ends.
func (h host) accept(ctx context.Context) {
	var meeting sync.WaitGroup
	defer meeting.Wait()
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		meeting.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			err := h.greet(conn)
			if !stop() || err != nil {
				_ = conn.Close() // a later process that connects again finds the home free, or this process
				h.log.Info("a connection is not used", slog.Any("error", err))
				return
			}
			select {
			case h.conns <- conn:
			case <-ctx.Done():
				_ = conn.Close() // see above
			}
		})
	}
}

// greet lets only the server that the node runs for begin a link.
func (h host) greet(conn net.Conn) error {
	server, err := ssh.SendHello(conn, h.hello, greetingTimeout)
	if err != nil {
		return err
	}
	if server.Name != h.server.Name || !bytes.Equal(server.Key, h.server.Key) {
		return errors.Join(errOther, ssh.SendReady(conn, textOther))
	}
	return ssh.SendReady(conn, "")
}

var errOther = errors.New("it is of another server, or for another target")

// relay passes data between conn and the process that holds the home's lock, until one of them ends. It returns false
// if that process accepts no connection.
func relay(ctx context.Context, conn net.Conn, folder string) (passed bool, err error) {
	there, err := home.DialSocket(ctx, folder)
	if err != nil {
		return false, err
	}
	defer func() { _ = there.Close() }() // an error loses nothing that isn't lost already
	stop := context.AfterFunc(ctx, func() { _ = there.Close() })
	defer stop()
	first := make([]byte, 4<<10)
	if err := there.SetReadDeadline(time.Now().Add(greetingTimeout)); err != nil { // the process may hang
		return false, err
	}
	n, err := there.Read(first) // the other process speaks first, unless it is about to end
	if n == 0 {
		return false, err
	}
	if err := there.SetReadDeadline(time.Time{}); err != nil {
		return false, err
	}
	if _, err := conn.Write(first[:n]); err != nil {
		return true, fmt.Errorf("pass on what the node says: %w", err)
	}
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // either end may close at any time
		_ = errors.Join(to.Close(), from.Close())
	}
	var beside sync.WaitGroup
	beside.Go(func() { pass(there, conn) })
	pass(conn, there)
	beside.Wait()
	return true, nil
}
