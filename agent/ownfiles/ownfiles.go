// Package ownfiles finds the old files in a conversation's folder that retention removes.
//
// The setting [retention] erases turns that ended long ago. The conversation continues, and its folder still
// contains the files of these turns: attachments, pictures that a model was shown, complete results that were
// too long for the model, files from MCP servers, and canvases. Parley itself put them there, under names that it chose.
// They're removed once they're older than the retention period and no remaining log entry refers to them. Files
// that an agent made belong to the conversation and stay.
package ownfiles

import (
	"fmt"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"

	"parley/agent/pictures"
	"parley/sessions"
)

// The folders of a session's directory in which Parley itself puts files.
const (
	Attachments = "attachments"   // files that came with messages, named by the number of their log entry
	Pictures    = pictures.Folder // what models are shown, named by the hash of its content
	Results     = ".agent/out"    // tool results too long for the model, named by the id of their call
	Foreign     = ".agent/mcp"    // files that MCP servers returned, named by the id of the call
	Canvases    = ".agent/canvas" // what the agent has drawn for people, named by the id of the call
)

// Folders returns the names of all folders in a workspace to which Parley itself adds files.
func Folders() []string { return []string{Attachments, Pictures, Results, Foreign, Canvases} }

// CallFolders returns the names of those of these folders whose files belong to tool calls.
func CallFolders() []string { return []string{Results, Foreign, Canvases} }

// OfCalls returns those of the files that Parley itself put there for one of the calls, which are given by their ids.
func OfCalls(files []string, calls map[string]bool) []string {
	var of []string
	for _, file := range files {
		if call, ok := strings.CutPrefix(ownerOf(file), "call/"); ok && calls[call] {
			of = append(of, file)
		}
	}
	return of
}

// Unreferenced returns the session's files that Parley itself put there and that none of the log's entries
// refers to any longer. Such files may be removed.
func Unreferenced(files []string, entries iter.Seq2[sessions.Entry, error]) ([]string, error) {
	owners := map[string][]string{} // the key is what an entry would refer to
	for _, file := range files {
		if owner := ownerOf(file); owner != "" {
			owners[owner] = append(owners[owner], file)
		}
	}
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if len(owners) == 0 {
			return nil, nil
		}
		named, err := ownersIn(e)
		if err != nil {
			return nil, err
		}
		for _, owner := range named {
			delete(owners, owner)
		}
	}
	var unnamed []string
	for _, of := range owners {
		unnamed = append(unnamed, of...)
	}
	slices.Sort(unnamed)
	return unnamed, nil
}

// ownerOf returns the part of a file's name that says which entry the file belongs to: the number of an
// attachment's entry, a picture's whole name, or the id of a tool call. It returns "" for a file that Parley
// didn't put there.
func ownerOf(file string) string {
	folder, name := path.Dir(file), path.Base(file)
	var shape string
	switch folder {
	case Attachments:
		shape = `^([1-9][0-9]*)-.`
	case Pictures:
		shape = `^([0-9a-f]{32}\.(?:png|jpg))$`
	case Results:
		shape = `^(.+)\.json$`
	case Foreign:
		shape = `^(.+)-[1-9][0-9]*(?:\.[a-z0-9]+)?$`
	case Canvases:
		shape = `^(.+)-[a-z0-9_]+\.(?:html|png)$`
	default:
		return ""
	}
	found := regexp.MustCompile(shape).FindStringSubmatch(name)
	if found == nil {
		return ""
	}
	if folder == Attachments || folder == Pictures {
		return folder + "/" + found[1]
	}
	return "call/" + found[1]
}

// ownersIn returns the owners, as ownerOf reads them from file names, of the files that belong to this entry.
func ownersIn(e sessions.Entry) ([]string, error) {
	switch e.Kind {
	case sessions.KindAttached:
		// The file may be about to be fetched: a turn that was cut off long ago may be continuing now.
		return []string{fmt.Sprintf("%s/%d", Attachments, e.N)}, nil
	case sessions.KindFetched:
		f, err := sessions.Decode[sessions.Fetched](e)
		if err != nil {
			return nil, err
		}
		named := []string{ownerOf(f.Path)}
		if f.Picture != nil {
			named = append(named, ownerOf(f.Picture.View))
		}
		return named, nil
	case sessions.KindPicture:
		p, err := sessions.Decode[sessions.Picture](e)
		return []string{ownerOf(p.Path), ownerOf(p.View)}, err
	}
	if e.Call != "" {
		return []string{"call/" + e.Call}, nil
	}
	return nil, nil
}

// Missing returns a function that explains to a model why the named file may be missing: Parley keeps such
// files only for this many days (0 means forever). The function returns "" if Parley doesn't put files with
// such names there.
func Missing(days int) func(name string) string {
	return func(name string) string {
		if days <= 0 || ownerOf(name) == "" {
			return ""
		}
		switch path.Dir(name) {
		case Attachments:
			return fmt.Sprintf("Files that people send are kept for only %s, so ask for this one again if you need it", period(days))
		case Pictures:
			return fmt.Sprintf("Parley keeps copies of pictures for only %s, so show the picture itself, or ask for it again", period(days))
		}
		return fmt.Sprintf("Parley keeps results for only %s, so make the call again if you need it", period(days))
	}
}

// period returns a number of days in words for a model, such as "30 days".
func period(days int) string {
	if days == 1 {
		return "a day"
	}
	return fmt.Sprintf("%d days", days)
}
