# Becomes a container's user and command: $bounds is what it may do at most, $user a number. A user's group and home are
# those of the image's /etc/passwd, as containerd takes them; without capabilities, since exec gives a user none.
PATH=$VSML_LAB_PATH
unset VSML_LAB_PATH
if [ "$user" != 0 ]; then
    entry=$(getent passwd "$user" || echo ::"$user":0::/:)
    group=$(echo "$entry" | cut -d: -f4)
    HOME=$(echo "$entry" | cut -d: -f6)
    export HOME
    set -- --reuid="$user" --regid="$group" --clear-groups "$@"
fi
exec setpriv --bounding-set="$bounds" --inh-caps=-all "$@"
