//! The CPU.
use crate::*;
/// CPU.
#[derive(Clone)]
pub struct Cpu;
/// Level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimdLevel { /// plain
    Plain }
impl Cpu { /// New.
 pub fn new(_threads: usize) -> Self { Cpu } }
/// Net.
pub struct CpuNetwork;
impl Device for Cpu {
    type Buffer = Vec<f32>;
    type Network = CpuNetwork;
    fn describe(&self) -> String { todo!() }
    fn upload(&self, values: &[f32]) -> Result<Vec<f32>> { Ok(values.to_vec()) }
    fn download(&self, b: &Vec<f32>) -> Result<Vec<f32>> { Ok(b.clone()) }
    fn network(&self, _: &Graph, _: &NetworkOptions) -> Result<CpuNetwork> { todo!() }
    fn softmax_loss(&self, _: &Vec<f32>, _: &Vec<f32>, _: usize, _: f32, _: &Positives, _: &mut [f32], _: &mut Vec<f32>) -> Result<()> { todo!() }
    fn blend_rows(&self, _: &mut Vec<f32>, _: usize, _: &[u32], _: &Vec<f32>, _: f32) -> Result<()> { todo!() }
    fn scan(&self, _: &Vec<f32>, _: &Vec<f32>, _: &Scan, _: &(dyn Fn(usize) + Sync)) -> Result<ScanResult> { todo!() }
}
impl Network for CpuNetwork {
    type Buffer = Vec<f32>;
    fn graph(&self) -> &Graph { todo!() }
    fn batch(&self) -> usize { todo!() }
    fn memory_bytes(&self) -> usize { todo!() }
    fn train_forward(&mut self, _: &[f32], _: u64) -> Result<()> { todo!() }
    fn output_and_gradient(&mut self) -> (&Vec<f32>, &mut Vec<f32>) { todo!() }
    fn backward(&mut self) -> Result<()> { todo!() }
    fn update(&mut self, _: &Sgd) -> Result<()> { todo!() }
    fn infer(&mut self, _: &[f32], _: &mut [f32]) -> Result<()> { todo!() }
    fn kept(&self, _: NodeId, _: usize) -> Result<Vec<f32>> { todo!() }
    fn input_gradient(&self) -> Result<Vec<f32>> { todo!() }
    fn read(&self, _: Tensors, _: usize) -> Result<Vec<f32>> { todo!() }
    fn write(&mut self, _: Tensors, _: usize, _: &[f32]) -> Result<()> { todo!() }
}
