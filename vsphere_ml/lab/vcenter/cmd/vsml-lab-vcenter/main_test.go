package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMistakesAreOneLineAndNeverShowThePassword(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte("schema = 9\ncolour = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VSML_LAB_PASSWORD", "open sesame")
	for _, arguments := range [][]string{
		nil, {"fly"}, {"serve"}, {"serve", "--colour"}, {"serve", "--topology", bad, "--state", t.TempDir()},
		{"serve", "--topology", "/nowhere.toml", "--state", t.TempDir()},
		{"serve", "--topology", bad, "--state", t.TempDir(), "--password-file", "/nowhere"},
	} {
		err := run(arguments)
		var wrong mistake
		if !errors.As(err, &wrong) {
			t.Errorf("%v gave %v", arguments, err)
			continue
		}
		if strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v shows the password: %v", arguments, err)
		}
	}
}

func TestPasswordIsNeeded(t *testing.T) {
	t.Setenv("VSML_LAB_PASSWORD", "")
	if _, err := password(""); err == nil {
		t.Error("no password was accepted")
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("word \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if word, err := password(file); err != nil || word != "word " {
		t.Errorf("got %q, %v", word, err)
	}
}
