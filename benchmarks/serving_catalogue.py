"""Processor time of one answer from a large catalogue.

python -m benchmarks.serving_catalogue [--items 100000]

A factorisation with 32 factors and random vectors; lists of ten; everything but the network and the log.
"""

import argparse
import json
import time

import numpy as np
import pyarrow as pa
import torch

from towpath.data.interactions import Histories
from towpath.data.vocabulary import Vocabulary
from towpath.models.factorization import Factorization, FactorizationSettings
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.serving.artifact import Artifact, ServingHistory
from towpath.serving.http.answers import Answerer
from towpath.serving.http.messages import ENCODER, RECOMMEND
from towpath.serving.http.model import ServedModel
from towpath.serving.http.settings import ArmSettings, ServerSettings

USERS, CALLS = 1_000, 500


def random_model(items: int) -> ServedModel:
    scorer = Factorization(FactorizationSettings(), Sizes(USERS, items))
    with torch.no_grad():
        for table in (scorer.users, scorer.items):
            table.weight.normal_(generator=Rng(0).torch("vectors", len(table.weight)))
    nothing = Histories(np.zeros(USERS + 1, np.int64), np.empty(0, np.int32))
    history = ServingHistory(nothing, np.ones(USERS, np.bool_), np.ones(items, np.int64))
    ids = (Vocabulary(pa.array(range(count))) for count in (USERS, items))
    return ServedModel(Artifact(scorer, *ids, history, {}), "random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    settings = ServerSettings((ArmSettings("only", ""),), None)
    models = {"only": random_model(asked.items)}
    answerer = Answerer(settings, models, lambda user: (), lambda: 0, Rng(0).numpy("exploration"))
    spent = []
    for call in range(CALLS):
        began = time.process_time()
        body = RECOMMEND.decode(b'{"user": %d, "k": 10}' % (call % USERS))
        ENCODER.encode(answerer.recommend(body).answer)
        spent.append(time.process_time() - began)
    quartiles = (np.quantile(spent, [0.25, 0.5, 0.75]) * 1e6).round().tolist()
    print(json.dumps({"items": asked.items, "processor_us_quartiles": quartiles}))


if __name__ == "__main__":
    main()
