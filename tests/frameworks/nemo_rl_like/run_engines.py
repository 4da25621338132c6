# SPDX-License-Identifier: Apache-2.0
"""Calls each engine, worker and way of weight sync once, but for actors: most need a GPU where they are real."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from nemo_rl.algorithms import dpo, sft, xtoken_off_policy_distillation
from nemo_rl.data.datasets.response_datasets import load_response_dataset
from nemo_rl.data.utils import setup_preference_data, setup_response_data
from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.distributed.virtual_cluster import RayVirtualCluster
from nemo_rl.environments.nemo_gym import setup_nemo_gym_config, spinup_nemo_gym_actor
from nemo_rl.evals import eval as evaluation
from nemo_rl.models.generation.dynamo.dynamo_generation import DynamoGeneration
from nemo_rl.models.generation.megatron.megatron_generation import MegatronGeneration
from nemo_rl.models.generation.sglang.sglang_generation import SGLangGeneration
from nemo_rl.models.generation.trtllm.trtllm_generation import TrtllmGeneration
from nemo_rl.models.generation.trtllm.trtllm_worker_async import TrtllmAsyncGenerationWorkerImpl
from nemo_rl.models.generation.vllm.vllm_generation import VllmGeneration
from nemo_rl.models.generation.vllm.vllm_worker import VllmGenerationWorkerImpl
from nemo_rl.models.generation.vllm.vllm_worker_async import VllmAsyncGenerationWorkerImpl
from nemo_rl.models.policy.lm_policy import Policy
from nemo_rl.models.policy.teacher_worker_group import TeacherWorkerGroup
from nemo_rl.models.policy.workers.dtensor_policy_worker import DTensorPolicyWorkerImpl
from nemo_rl.models.policy.workers.dtensor_policy_worker_v2 import DTensorPolicyWorkerV2Impl
from nemo_rl.models.policy.workers.megatron_policy_worker import MegatronPolicyWorkerImpl
from nemo_rl.models.value.lm_value import Value
from nemo_rl.models.value.workers.dtensor_value_worker_v2 import DTensorValueWorkerV2Impl
from nemo_rl.models.value.workers.megatron_value_worker import MegatronValueWorkerImpl
from nemo_rl.utils.config import load_config
from nemo_rl.utils.logger import Logger
from nemo_rl.weight_sync.checkpoint_engine_weight_synchronizer import CheckpointEngineWeightSynchronizer
from nemo_rl.weight_sync.collective_weight_synchronizer import CollectiveWeightSynchronizer
from nemo_rl.weight_sync.http_weight_synchronizer import HTTPWeightSynchronizer
from nemo_rl.weight_sync.ipc_weight_synchronizer import IPCWeightSynchronizer
from nemo_rl.weight_sync.megatron_weight_synchronizer import MegatronWeightSynchronizer
from nemo_rl.weight_sync.nccl_reshard_weight_synchronizer import NcclReshardWeightSynchronizer
from nemo_rl.weight_sync.vllm_remote_sparse_weight_synchronizer import VllmRemoteSparseWeightSynchronizer
from run_trainers import LocalWorkers

DATA = BatchedDataDict(input_ids=[[1] * 4] * 2, input_lengths=[4, 5])


async def each(generation: Any) -> int:
    """How many samples an engine gives that gives them one by one."""
    return len([sample async for sample in generation])


def generate(engine: Any) -> None:
    print(
        type(engine).__name__,
        engine.generate(DATA)['generation_lengths'],
        asyncio.run(each(engine.generate_async(DATA))),
    )


def train(worker: Any) -> None:
    """What the workers of all policies can do."""
    worker.prepare_for_training()
    print(type(worker).__name__, worker.train(DATA, None))
    worker.prepare_for_lp_inference()
    worker.get_logprobs(data=DATA)
    worker.get_reference_policy_logprobs(data=DATA)
    worker.get_topk_logits(data=DATA, k=2)
    worker.offload_before_refit()
    worker.stream_weights_via_ipc_zmq()
    worker.broadcast_weights_for_collective()
    worker.offload_after_refit()
    worker.save_checkpoint(os.devnull)


def value(worker: Any) -> None:
    worker.prepare_for_inference()
    worker.get_values(DATA)
    worker.prepare_for_training()
    print(type(worker).__name__, worker.train(DATA, None))
    worker.save_checkpoint(os.devnull)


async def update(worker: Any, *names: str) -> None:
    for name in names:
        await getattr(worker, name)()


def main() -> None:
    config = load_config('configs/all.yaml')
    setup_nemo_gym_config(config, None)
    data, val_data = setup_response_data(None, config['data'])
    setup_preference_data(None, config['data'])
    load_response_dataset(config['data'])
    cluster = RayVirtualCluster([1])
    sft.setup(sft.MasterConfig(**config), None, data, val_data)
    dpo.setup(dpo.MasterConfig(**config), None, data, val_data)
    TeacherWorkerGroup({}, cluster, config['policy'], None)
    urls, model = ['http://127.0.0.1'], config['policy']['model_name']
    options = {'enable_router_replay': False, 'routed_experts_dtype': None, 'use_fastokens': False}
    spinup_nemo_gym_actor({}, urls, model, tokenizer=None, **options)

    engine_config = {**config['policy']['generation'], 'model_name': model}
    vllm = VllmGeneration(engine_config, workers=LocalWorkers())
    vllm.load_and_start()
    vllm.generate_text(DATA)
    for engine in (
        vllm,
        SGLangGeneration(cluster, engine_config),
        TrtllmGeneration(cluster, engine_config),
        MegatronGeneration(engine_config, None),
        DynamoGeneration(cluster, engine_config),
    ):
        generate(engine)

    megatron = MegatronPolicyWorkerImpl({}, None, worker_sharding_annotations=None)
    train(megatron)
    megatron.begin_train_step(None)
    megatron.train_microbatch(DATA)
    megatron.finish_train_step()
    megatron.nccl_reshard_refit()
    megatron.prepare_for_generation()
    megatron.generate(data=DATA)
    asyncio.run(each(megatron.generate_async(DATA)))
    megatron.finish_generation()
    megatron.swap_weights_via_reshard(True)
    first = DTensorPolicyWorkerImpl({}, None)
    train(first)
    first.score(DATA)
    second = DTensorPolicyWorkerV2Impl({})
    train(second)
    second.score(DATA)
    second.stream_weights_via_http(urls, 0)
    value(MegatronValueWorkerImpl({}, None, worker_sharding_annotations=None))
    value(DTensorValueWorkerV2Impl({}, None))

    worker = VllmGenerationWorkerImpl({})
    worker.generate(DATA)
    worker.generate_text(DATA)
    for method in ('update_weights_via_ipc_zmq', 'update_weights_from_collective', 'nccl_reshard_refit'):
        getattr(worker, method)()
    worker.sleep()
    worker.wake_up()
    one_by_one = VllmAsyncGenerationWorkerImpl({})
    asyncio.run(each(one_by_one.generate_async(DATA)))
    asyncio.run(each(one_by_one.generate_text_async(DATA)))
    updates = ('update_weights_via_ipc_zmq_async', 'update_weights_from_collective_async')
    asyncio.run(update(one_by_one, *updates, 'nccl_reshard_refit_async', 'sleep_async', 'wake_up_async'))
    trtllm = TrtllmAsyncGenerationWorkerImpl({})
    asyncio.run(trtllm.generate_async(DATA))
    asyncio.run(update(trtllm, *updates, 'sleep_async', 'wake_up_async'))

    for way in (
        IPCWeightSynchronizer,
        HTTPWeightSynchronizer,
        CollectiveWeightSynchronizer,
        MegatronWeightSynchronizer,
        NcclReshardWeightSynchronizer,
        CheckpointEngineWeightSynchronizer,
        VllmRemoteSparseWeightSynchronizer,
    ):
        way().sync_weights()

    Value(config['policy'])
    student = Policy(config['policy'], workers=LocalWorkers())
    distillation = xtoken_off_policy_distillation
    master_config = distillation.MasterConfig(**config)
    distillation.setup(master_config, None, {}, data, val_data)
    state, logger = {'total_steps': 0}, Logger(config['logger'])
    distillation.xtoken_off_policy_distillation_train(
        student, {'teacher': student}, data, val_data, None, logger, None, state, master_config
    )
    evaluated = evaluation.MasterConfig(generation=engine_config)
    print(evaluation.run_env_eval(vllm, evaluation.setup(evaluated, None, val_data), None, evaluated))


if __name__ == '__main__':
    main()
