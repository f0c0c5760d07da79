"""Plays a journey with the client that openapi-python-client makes of docs/openapi.json.

journey.py CLIENTS URL INSTANCE PROJECT: the folder of the generated package, the service, the project's name and folder.
"""

import json
import pathlib
import sys

clients, url, instance, project = sys.argv[1:]
sys.path.insert(0, clients)

from watershed_client import Client
from watershed_client.api.default import (
    get_files,
    get_metrics_view_bounds,
    get_resources,
    get_resources_kind_name,
    get_resources_kind_name_explain,
    post_metrics_view_query,
    post_resources_kind_name_refresh,
)
from watershed_client.models import MetricsQueryForm, ProblemDocument

client = Client(base_url=url, timeout=60)
of = {"instance": instance, "client": client}
model = {"kind": "model", "name": "best_hours"}


def events(token):
    """Follows what changes after a token."""
    path = f"/v1/instances/{instance}/watch"
    with client.get_httpx_client().stream("GET", path, params={"from": token}, timeout=60) as stream:
        name, last = "", token
        for line in stream.iter_lines():
            key, _, value = line.partition(": ")
            if key == "event":
                name = value
            elif key == "id":
                last = value
            elif key == "data":
                yield name, last, json.loads(value)


def follow(token, health):
    """Waits until the model has a health; returns the token to go on from."""
    for name, last, data in events(token):
        assert name != "lagged", "the token is known"
        if name in ("changed", "status") and data["name"] == "best_hours" and data["health"] == health:
            return last
    raise AssertionError("the stream ended")


# List.
page, listed = None, []
while page is None or page.next_:
    more = {} if page is None else {"page": page.next_}
    page = get_resources.sync(**of, limit=20, **more)
    assert not isinstance(page, ProblemDocument), page
    listed += page.resources
assert len(listed) > 40 and all(one.health == "ok" for one in listed), listed
files = get_files.sync(**of)
declared = [file for file in files.files if any(one.name == "best_hours" for one in file.declares)]
assert len(declared) == 1, declared

# Break a model on disk, and follow its failure.
file = pathlib.Path(project, declared[0].path)
text = file.read_text()
assert "FROM delays_by_hour" in text
file.write_text(text.replace("FROM delays_by_hour", "FROM delays_by_huor"))
token = follow(page.watch, "failed")

# Explain.
explained = get_resources_kind_name_explain.sync(**of, **model)
cause = explained.causes[0]
assert cause.code == "failed" and "delays_by_hour" in cause.error.hint, explained
assert cause.at.path == declared[0].path, cause

# Mend.
file.write_text(text)
follow(token, "ok")

# Refresh, and wait for the end.
request = post_resources_kind_name_refresh.sync(**of, **model, prefer="wait=60")
assert request.state == "done", request
assert get_resources_kind_name.sync(**of, **model).health == "ok"

# Ask a metrics view.
query = MetricsQueryForm.from_dict({"query": {"measures": [{"name": "flights"}]}})
answer = post_metrics_view_query.sync(**of, view="departures", body=query)
assert int(answer.rows[0][0]) > 0, answer
ends = get_metrics_view_bounds.sync(**of, view="departures")
assert ends.earliest < ends.latest, ends

# A mistake is a problem with a code.
wrong = get_resources_kind_name.sync(**of, kind="model", name="best_huors")
assert isinstance(wrong, ProblemDocument) and wrong.code == "unknown-name" and "best_hours" in wrong.hint, wrong
print("done")
