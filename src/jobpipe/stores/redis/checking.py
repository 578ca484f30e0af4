"""What a server must be to keep the promises, and what its settings make of what it keeps."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import StoreAwayError, StoreError, StoreRefusedError
from .server import Server

_OLDEST = (6, 2)


def refuse_unfit(server: Server) -> Mapping[str, str]:
    """What INFO says; StoreRefusedError for a server that would lose jobs or cannot run the scripts."""
    info = _info(server)
    url = server.address.url
    version = info.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST:
        raise StoreRefusedError(f"the store {url} is Redis {version}: at least 6.2 is needed")
    if info.get("role") == "slave":
        raise StoreAwayError(f"the store {url} is a read-only replica of {info.get('master_host')}")
    policy = info.get("maxmemory_policy") or _config(server, "maxmemory-policy").get("maxmemory-policy", "")
    if policy != "noeviction":
        raise StoreRefusedError(
            f"the store {url} has the maxmemory-policy {policy or 'unknown'}, with which it may delete jobs when "
            "its memory is full: say CONFIG SET maxmemory-policy noeviction, and write it to its configuration"
        )
    if info.get("cluster_enabled") == "1" and server.address.options.get("db"):
        raise StoreRefusedError(f"the store {url} is a cluster, which has no database but 0")
    return info


def remarks(server: Server) -> list[str]:
    """How durable what the server acknowledges is, and what else its operator should know."""
    info = refuse_unfit(server)
    config = _config(server, "appendonly") | _config(server, "appendfsync") | _config(server, "save")
    found = [_durability(info, config)]
    if info.get("maxmemory") == "0":
        found.append(
            "maxmemory is not set: a server that outgrows its machine is killed, rather than saying that it is full"
        )
    elif int(info.get("used_memory", "0")) >= int(info.get("maxmemory") or "0") > 0:
        found.append(
            "it is full (maxmemory): new jobs are refused until there is room; those that it has go on"
        )
    if int(info.get("connected_slaves", "0")):
        found.append("replicas follow with a delay: a failover may lose the last moments")
    return found


def _durability(info: Mapping[str, str], config: Mapping[str, str]) -> str:
    if config.get("appendonly") == "yes" or info.get("aof_enabled") == "1":
        return {
            "always": "every accepted job and every outcome is on disk before it is acknowledged (appendfsync always)",
            "everysec": "a power cut may take the last second; a crash of Redis alone takes nothing (appendfsync everysec)",
            "no": "a power cut may take what the system had not written yet, some 30 s (appendfsync no)",
        }.get(
            config.get("appendfsync", ""),
            "it has an append-only file; how often that is synced, it does not say",
        )
    if "save" not in config:
        return "it has no append-only file: a crash or a power cut takes all since its last snapshot, if it makes any"
    if config["save"]:
        return (
            f"it has snapshots only (save {config['save']}): a crash or a power cut takes all since the last one; "
            "say CONFIG SET appendonly yes"
        )
    return "it keeps nothing on disk: jobs are gone when the server ends; say CONFIG SET appendonly yes"


def _info(server: Server) -> dict[str, str]:
    text = server.ask("INFO").decode(errors="replace")
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#"))


def _config(server: Server, name: str) -> dict[str, str]:
    """A setting; nothing where the server does not let us ask, as those of cloud providers do not."""
    try:
        values = [value.decode() for value in server.ask("CONFIG", "GET", name)]
    except StoreAwayError:
        raise
    except StoreError:
        return {}
    return dict(zip(values[::2], values[1::2], strict=True))
